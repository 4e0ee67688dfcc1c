// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// Linked with boxloss::torch, of which it calls no function.
int main() {}
