// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <stdexcept>

namespace boxloss {

/// The base of all exceptions of boxloss. The five kinds below are all there are.
class BOXLOSS_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value, a shape or a combination of arguments that is not allowed.
class BOXLOSS_API InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A dtype that an argument cannot have, or what an implementation does not serve.
class BOXLOSS_API Unsupported : public Error {
 public:
  using Error::Error;
};

/// An implementation that is not in this build, was not loaded, or does not exist.
class BOXLOSS_API NotCompiled : public Error {
 public:
  using Error::Error;
};

/// An implementation is built, but its device is missing on this machine.
class BOXLOSS_API NoDevice : public Error {
 public:
  using Error::Error;
};

/// The device's runtime reported an error.
class BOXLOSS_API DeviceError : public Error {
 public:
  using Error::Error;
};

}  // namespace boxloss
