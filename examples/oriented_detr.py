# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A small DETR of boxes with an angle, trained on coloured rectangles.

    python -m examples.oriented_detr [--picture FILE] [--device cuda]

`criterion` is what to copy: matcher, rotated GIoU, L1, angle and classes of all decoder layers and
images at once. Boxes are those of examples/rectangles.py. --picture needs matplotlib.
"""

import argparse
import time

import torch
from boxloss.torch import class_loss, hungarian_match, matching_cost, pairwise_iou, rotated_box_loss
from torch import Tensor, nn

from examples.rectangles import COLOURS, SIDE, Targets, draw, save_picture

QUERIES, LAYERS, WIDTH = 16, 2, 64
STEPS, IMAGES = 1000, 16  # images in a step
IOU_WEIGHT, L1_WEIGHT, ANGLE_WEIGHT, CLASS_WEIGHT = 2.0, 5.0, 1.0, 2.0


def criterion(logits: Tensor, boxes: Tensor, targets: Targets) -> Tensor:
    """Of logits (layers, images, queries, classes) and boxes (layers, images, queries, 5)."""
    cost = matching_cost(
        boxes,
        targets.boxes,
        targets.offsets,
        logits=logits,
        labels=targets.labels,
        class_mode="focal",
        loss="giou",
        iou_weight=IOU_WEIGHT,
        l1_weight=L1_WEIGHT,
        angle_weight=ANGLE_WEIGHT,
        class_weight=CLASS_WEIGHT,
    )
    match = hungarian_match(cost, targets.offsets)
    giou = rotated_box_loss(
        boxes,
        targets.boxes,
        "giou",
        eps=0.0,
        pred_index=match.pred_index,
        target_index=match.target_index,
        reduction="sum",
    )
    # A row without a query has the index -1, and no part in the loss.
    apart = boxes.flatten(0, 2)[match.pred_index] - targets.boxes[match.target_index]
    apart = apart.where((match.pred_index >= 0)[..., None], 0)
    l1 = apart[..., :4].abs().sum()
    turn = (1 - (2 * apart[..., 4]).cos()).sum()  # half a turn is its period, as it is a box'
    scores = class_loss(
        logits, match.target_of_query, targets.labels, mode="focal", reduction="sum"
    )
    total = IOU_WEIGHT * giou.sum() + L1_WEIGHT * l1 + ANGLE_WEIGHT * turn
    return (total + CLASS_WEIGHT * scores.sum()) / max(len(targets.boxes), 1)


class Detector(nn.Module):
    """Learned queries look at what convolutions have found, layer after layer."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, WIDTH, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, 1, 1),
            nn.Flatten(2),
        )
        self.places = nn.Parameter(torch.randn((SIDE // 8) ** 2, WIDTH))
        self.queries = nn.Parameter(torch.randn(QUERIES, WIDTH))
        self.layers = nn.ModuleList(
            nn.TransformerDecoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
            for _ in range(LAYERS)
        )
        self.classes = nn.Linear(WIDTH, len(COLOURS))
        self.boxes = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 6))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and boxes, as `criterion` takes them."""
        seen = self.convolutions(images).mT + self.places
        states = [self.queries.expand(len(images), -1, -1)]
        for layer in self.layers:
            states.append(layer(states[-1], seen))
        queries = torch.stack(states[1:])
        numbers = self.boxes(queries)
        # Two numbers are a direction, of twice the angle: nothing jumps at half a turn.
        angle = torch.atan2(numbers[..., 5:], numbers[..., 4:5]) / 2
        return self.classes(queries), torch.cat((numbers[..., :4].sigmoid(), angle), -1)


def train(model: Detector, steps: int, seed: int, device: str = "cpu") -> list[float]:
    """The losses of the steps, each of new images."""
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    losses = []
    for _ in range(steps):
        images, targets = draw(IMAGES, random)
        loss = criterion(*model(images.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def average_precision(scores: Tensor, overlaps: Tensor, thresholds: Tensor) -> Tensor:
    """All-point AP at each threshold, of overlaps (detections, ground truth)."""
    taken = torch.zeros(len(thresholds), overlaps.shape[1], dtype=torch.bool)
    hits = []
    for overlap in overlaps[scores.argsort(descending=True)]:
        best, box = overlap.masked_fill(taken, -1).max(1)
        hits.append(best >= thresholds)
        taken[hits[-1], box[hits[-1]]] = True
    is_hit = torch.stack(hits).double()
    precision = is_hit.cumsum(0) / torch.arange(1, len(scores) + 1)[:, None]
    highest = precision.flip(0).cummax(0).values.flip(0)  # at this recall, or at a higher one
    return (highest * is_hit).sum(0) / overlaps.shape[1]


def evaluate(logits: Tensor, boxes: Tensor, targets: Targets) -> Tensor:
    """AP50, AP55, … AP95 by the rotated IoU, each the mean of the classes' AP."""
    iou = pairwise_iou(boxes, targets.boxes, targets.offsets, "iou", eps=0.0)  # (queries, rows)
    images = torch.arange(len(boxes))
    is_own = images[:, None, None] == images.repeat_interleave(targets.offsets.diff())
    overlaps = (iou * is_own).flatten(0, 1)
    thresholds = torch.arange(50, 100, 5) / 100
    of_classes = [
        average_precision(scores, overlaps[:, targets.labels == label], thresholds)
        for label, scores in enumerate(logits.flatten(0, 1).unbind(1))
    ]
    return torch.stack(of_classes).mean(0)


@torch.no_grad()
def predict(model: Detector, images: Tensor, device: str) -> tuple[Tensor, Tensor]:
    """Logits (images, queries, classes) and boxes (images, queries, 5) of the last layer."""
    logits, boxes = model(images.to(device))
    return logits[-1].cpu(), boxes[-1].cpu()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", help="a file for eight held-out images")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = Detector().to(options.device)
    images, targets = draw(300, torch.Generator().manual_seed(10**6))  # the same for all seeds

    predicted = {"before": predict(model, images, options.device)}
    start = time.perf_counter()
    train(model, STEPS, options.seed, options.device)
    print(f"{STEPS} steps in {time.perf_counter() - start:.1f} s on {options.device}")
    predicted["after"] = predict(model, images, options.device)
    for when, (logits, boxes) in predicted.items():
        ap = evaluate(logits, boxes, targets)
        print(f"{when} training: AP50 {ap[0]:.3f}, AP50-95 {ap.mean():.3f}")
    if options.picture:
        save_picture(options.picture, images[:8], targets, predicted)


if __name__ == "__main__":
    torch.set_num_threads(1)  # enough for so little, and one result on any number of cores
    main()
