"""Places labels beside their points. No label covers another label or a point. A label is first tried around its point,
then farther away with a thin line to the point. If no place is free, a number is drawn that the caption explains, or
else the caption counts the label as left out. A label without a line is nearer to its own point than to any other
point. (The package adjustText does the first two steps, draws no numbers, and lets many labels overlap.)"""

from itertools import pairwise, takewhile

import numpy as np

from . import style
from .frame import KEY

GAPS = [2.0, 4.5, 8.0, 13.0, 19.0, 27.0, 37.0]  # points: distances between a label and its point, called rings
NEAR = 2  # labels in this many inner rings need no line to their point
AIR = 1.0  # points of empty room around a label
NEARER = 1.4  # a label without a line: least ratio of the distances to another symbol and to its own symbol
SYMBOL = 10000  # a covered symbol is as bad as this many covered pixels of a line
SAME = 3.0  # points: symbols at most this far apart count as one place
ANGLES = np.radians([-45, 45, -135, 135, 0, 180, 90, -90, 22, -22, 158, -158, 67, -67, 113, -113])


def overlaps(box, boxes):
    """Returns how many boxes a box touches. A box is x0, y0, x1, y1."""
    if not len(boxes):
        return 0
    return int(
        ((box[0] < boxes[:, 2]) & (box[2] > boxes[:, 0]) & (box[1] < boxes[:, 3]) & (box[3] > boxes[:, 1])).sum()
    )


def inside(box, points):
    if not len(points):
        return 0
    x, y = points[:, 0], points[:, 1]
    return int(((x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])).sum())


def distances(box, points):
    """Returns the distances of points from a box; 0 within it."""
    return np.hypot(*np.maximum(0, np.maximum(box[:2] - points, points - box[2:])).T)


def dotted(start, end, step=2.0):
    """Returns points along a line, so close to each other that no text fits between two of them."""
    way = np.subtract(end, start)
    count = int(min(max(np.hypot(*way) / step, 2), 5000))
    return start + np.arange(count)[:, None] / (count - 1) * way


def name_of(text):
    """Returns the words before the first number: "l2" of "l2 12.1 TB/s"."""
    return " ".join(takewhile(lambda word: not word[0].isdigit(), text.split())).rstrip(":") or text


class Labels:
    """The labels of one Axes, whose limits and size must be final. Add all obstacles before you place labels."""

    def __init__(self, axes, pixels_per_point):
        self.axes, self.scale = axes, pixels_per_point
        self.renderer = axes.figure.canvas.get_renderer()
        self.boxes, self.dots, self.key = np.empty((0, 4)), np.empty((0, 2)), []
        self.symbols, self.cut, self.missing = np.empty((0, 2)), [], 0

    def pixels(self, x, y):
        return self.axes.transData.transform(np.column_stack([np.atleast_1d(x), np.atleast_1d(y)]))

    def add_points(self, x, y, size=style.SIZE):
        at = self.pixels(x, y)
        half = (size / 2 + 0.5) * self.scale
        self.boxes = np.vstack([self.boxes, np.hstack([at - half, at + half])])
        self.symbols = np.vstack([self.symbols, at])

    def add_line(self, x, y):
        """Adds a line as an obstacle. A NaN in x or y ends a line and starts another."""
        ends = [pair for pair in pairwise(self.pixels(x, y)) if np.isfinite(pair).all()]
        found = np.vstack([np.empty((0, 2)), *(dotted(*pair) for pair in ends)])
        within = ((found > self.axes.bbox.min - 2) & (found < self.axes.bbox.max + 2)).all(axis=1)
        self.dots = np.vstack([self.dots, found[within]])

    def free(self, box):
        """Returns whether a box lies within the axes and touches no obstacle."""
        low, high = self.axes.bbox.min + 1, self.axes.bbox.max - 1
        fits = box[0] >= low[0] and box[1] >= low[1] and box[2] <= high[0] and box[3] <= high[1]
        return fits and not overlaps(box, self.boxes) and not inside(box, self.dots)

    def places(self, at, size, rings):
        """Yields (box, ring) for all places around a point, the best one first. A box is x0, y0, x1, y1 in pixels."""
        half = np.asarray(size) / 2 + AIR * self.scale
        for ring in rings:
            distance = (GAPS[ring] + style.SIZE / 2) * self.scale
            for angle in ANGLES:
                way = np.array([np.cos(angle), np.sin(angle)])
                centre = at + way * distance + np.clip(way * 1.5, -1, 1) * half
                yield np.concatenate([centre - half, centre + half]), ring

    def found(self, at, size, rings):
        """Returns (box, ring) of the first free place around a point, preferably one whose line to the point crosses no
        other line. None: no place is free."""
        free = [place for place in self.places(at, size, rings) if self.free(place[0])]
        for across in (False, True):
            for box, ring in free:
                if (ring >= NEAR or self.belongs(at, box)) and self.line_is_free(at, box, across):
                    return box, ring
        return None

    def belongs(self, at, box):
        """Returns whether a symbol at the place of `at` is clearly nearer to the box than symbols of other places."""
        letters = box + AIR * self.scale * np.array([1, 1, -1, -1])
        far = distances(letters, self.symbols)
        nearest = self.symbols[far.argmin()]
        others = far[np.hypot(*(self.symbols - nearest).T) > SAME * self.scale]
        same = np.hypot(*(nearest - at)) <= SAME * self.scale
        return same and others.min(initial=np.inf) > NEARER * distances(letters, at[None])[0]

    def line_is_free(self, at, box, across):
        """Returns whether the line from a label to its point crosses no label and no symbol. across: the line may cross
        other lines."""
        path = dotted(at, (box[:2] + box[2:]) / 2)
        path = path[np.hypot(*(path - at).T) > (style.SIZE / 2 + 0.75) * self.scale]
        path = path[[not inside(box, point[None]) for point in path]]
        # The symbol at the point itself, and others at the same place, are no obstacles.
        others = [other for other in self.boxes if distances(other, at[None])[0] > style.SIZE / 2 * self.scale]
        if any(inside(other, path) for other in others):
            return False
        return across or not len(path) or not self.on_line(path)

    def on_line(self, path):
        near = ((self.dots > path.min(axis=0) - 2) & (self.dots < path.max(axis=0) + 2)).all(axis=1)
        return any(np.hypot(*(self.dots[near] - point).T).min(initial=9) < 2 for point in path)

    def write(self, text, box, ring, at, colour, size):
        """Draws a label at its place, with a line to the point if the ring is an outer one. Label and line become
        obstacles."""
        centre = (box[:2] + box[2:]) / 2
        if ring >= NEAR:
            inverse = self.axes.transData.inverted()
            edge = np.clip(at, box[:2], box[2:])
            (x0, y0), (x1, y1) = inverse.transform([at, edge])
            self.axes.plot([x0, x1], [y0, y1], color=colour, linewidth=0.35, zorder=2.5, gid="leader")
            self.dots = np.vstack([self.dots, dotted(at, edge)])
        self.boxes = np.vstack([self.boxes, box])
        return self.text(text, centre, colour, size, zorder=5, gid="label")

    def text(self, text, centre, colour, size, **how):
        """Draws a text whose middle is at the pixel `centre`."""
        x, y = self.axes.transData.inverted().transform(centre)
        how |= {"ha": "center", "va": "center", "fontsize": size, "color": colour, "path_effects": style.HALO}
        return self.axes.text(x, y, text, **how)

    def extent(self, text, size):
        probe = self.axes.text(0.5, 0.5, text, transform=self.axes.transAxes, fontsize=size)
        box = probe.get_window_extent(self.renderer)
        probe.remove()
        return box.width, box.height

    def place(self, text, x, y, colour=style.BLACK, size=style.SMALL):
        """Writes a label near a point (x, y) of the data. Returns the Text, or None if there is no room."""
        text, at = self.axes.figure.renamed(text), self.pixels(x, y)[0]
        rings = range(len(GAPS))
        if found := self.found(at, self.extent(text, size), rings):
            return self.write(text, *found, at, colour, size)
        number = f"({len(self.key) + 1})"  # in brackets, so that it does not look like a value
        if found := self.found(at, self.extent(number, size), rings):
            self.key += [text]
            return self.write(number, *found, at, colour, size)
        self.missing += 1
        return None

    def hits(self, middle, way, width, height):
        """Returns the number of pixels of lines that a slanted label would cover, plus SYMBOL for each covered symbol.
        None: the label would extend beyond the axes."""
        normal = np.array([-way[1], way[0]])
        ends = [middle - way * width / 2, middle + way * width / 2]
        shifts = np.linspace(-height / 2, height / 2, 5)
        parts = np.vstack([dotted(ends[0] + normal * shift, ends[1] + normal * shift, 4) for shift in shifts])
        if ((parts < self.axes.bbox.min) | (parts > self.axes.bbox.max)).any():
            return None
        corner = np.concatenate([parts.min(axis=0), parts.max(axis=0)])
        close = ((self.boxes[:, :2] < corner[2:]) & (self.boxes[:, 2:] > corner[:2])).all(axis=1)
        boxes = sum(inside(box, parts) > 0 for box in self.boxes[close])
        near = self.dots[((self.dots > corner[:2]) & (self.dots < corner[2:])).all(axis=1)]
        across = np.abs((near - middle) @ normal) < height / 2
        within = np.abs((near - middle) @ way) < width / 2
        return SYMBOL * boxes + int((across & within).sum())

    def beside(self, at, width, height):
        """Returns (result of hits(), middle) for the best place of a label along the line from at[0] to at[-1]
        (pixels). None: there is no room."""
        length = np.hypot(*(at[-1] - at[0]))
        way = (at[-1] - at[0]) / length
        normal, best = np.array([-way[1], way[0]]), None
        for side in (1, -1):
            for start in np.linspace(length - width - 4, 4, 40):
                middle = at[0] + way * (start + width / 2) + side * normal * (height / 2 + 1.2 * self.scale)
                hits = self.hits(middle, way, width, height)
                if start < 0 or hits is None:
                    continue
                if best is None or hits < best[0]:
                    best = hits, middle
                if hits == 0:
                    return best
        return best

    def fitting(self, text, at, size):
        """Returns (text, middle, width, height) of a label along a line. If the words before the text's number cover
        less than the whole text, only these words are drawn, and the caption has the whole text. None: all labels would
        cover a symbol or extend beyond the axes."""
        best = None
        for shown in dict.fromkeys([text, name_of(text)]):
            width, height = np.asarray(self.extent(shown, size)) + AIR * self.scale
            found = self.beside(at, width, height)
            if found and (best is None or found[0] < best[0]):
                best = found[0], shown, found[1], width, height
        covers = best is None or best[0] >= SYMBOL
        self.cut += [text] if name_of(text) != text and (covers or best[1] != text) else []
        return None if covers else best[1:]

    def along(self, text, x, y, colour=style.BLACK, size=style.SMALL):
        """Writes a label along a line of the data, above or below the line. Returns the Text, or None if there is no
        room."""
        text, at = self.axes.figure.renamed(text), self.pixels(x, y)
        at = at[((at >= self.axes.bbox.min) & (at <= self.axes.bbox.max)).all(axis=1)]
        if len(at) < 2:
            return None
        run, rise = at[-1] - at[0]
        found = self.fitting(text, at, size)
        if not found:
            return None
        text, middle, width, height = found
        for place in np.linspace(-width / 2, width / 2, 24):
            centre, half = middle + np.array([run, rise]) / np.hypot(run, rise) * place, height / 2
            self.boxes = np.vstack([self.boxes, [*(centre - half), *(centre + half)]])
        how = {"rotation": np.degrees(np.arctan2(rise, run)), "rotation_mode": "anchor"}
        return self.text(text, middle, colour, size, zorder=2, gid="roof label", **how)  # below symbols

    def key_text(self):
        """Returns sentences for the caption: which labels were shortened or became numbers, and how many are missing.
        "" if all labels are whole."""
        words = [*self.cut, *(f"({number}) {text}" for number, text in enumerate(self.key, 1))]
        key = f"{KEY}{'; '.join(words)}. " * bool(words)
        labels = "label has" if self.missing == 1 else "labels have"
        return key + f"{self.missing} {labels} no room, fewer rows would have" * (self.missing > 0)
