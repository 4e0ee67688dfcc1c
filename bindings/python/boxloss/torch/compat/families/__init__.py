# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The families that `use_boxloss` knows: a line for each name that one of their models is found by.

The name is that of a model's class, or in transformers of a criterion that is a function. A family
is FAMILY in the module of this folder that the line names, which is imported when such a model is
there.
"""

KNOWN = {
    "transformers": {
        "ForObjectDetectionLoss": "detr",
        "ForSegmentationLoss": "detr_masks",
        "DeformableDetrForObjectDetectionLoss": "deformable_detr",
        "DeformableDetrForSegmentationLoss": "conditional_detr_masks",
        "GroundingDinoForObjectDetectionLoss": "grounding_dino",
        "LwDetrForObjectDetectionLoss": "lw_detr",
        "RfDetrForSegmentationLoss": "rf_detr_masks",
        "RTDetrForObjectDetectionLoss": "rt_detr",
        "DFineForObjectDetectionLoss": "d_fine",
        "Deimv2ForObjectDetectionLoss": "deimv2",
        "Mask2FormerForUniversalSegmentation": "mask2former",
        "EomtForUniversalSegmentation": "mask2former",
        "EomtDinov3ForUniversalSegmentation": "mask2former",
        "OneFormerForUniversalSegmentation": "oneformer",
        "MaskFormerForInstanceSegmentation": "maskformer",
    },
    "ultralytics": {
        "DetectionModel": "yolo",
        "SegmentationModel": "yolo_with_more",
        "PoseModel": "yolo_with_more",
        "OBBModel": "oriented_yolo",
        "RTDETRDetectionModel": "ultralytics_rt_detr",
    },
    "torchvision": {
        "FCOS": "fcos",
        "RetinaNet": "retinanet",
        "FasterRCNN": "faster_rcnn",
        "MaskRCNN": "faster_rcnn",
        "KeypointRCNN": "faster_rcnn",
        "SSD": "ssd",
    },
    "rfdetr": {"RFDETR": "rf_detr_trainings", "SetCriterion": "rf_detr"},
}
