"""What a figure shows, read off its artists."""

import numpy as np


def names_of(ax):
    """Names along the axis of columns, from top to bottom."""
    return [label.get_text() for label in ax.get_yticklabels()]


def line(ax, label):
    """The line or dots with this label in the legend."""
    [found] = [each for each in ax.lines if each.get_label() == label]
    return found


def drawn(ax, label="mean"):
    """Positions and heights of a curve and its dots."""
    return np.array(line(ax, label).get_data(), dtype=float)


def ends_of(ax, label):
    """Ends of the intervals of each column, (columns, 2)."""
    [found] = [each for each in ax.collections if each.get_label() == label]
    return np.array([segment[:, 0] for segment in found.get_segments()])


def legend_of(ax):
    """Texts of the legend of the figure, or of the axes."""
    legends = [*ax.figure.legends, *([ax.get_legend()] if ax.get_legend() else [])]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


def band(ax, label):
    """Ends of a band at each of its points, (points, 2), with their positions."""
    [found] = [each for each in ax.collections if each.get_label() == label]
    vertices = found.get_paths()[0].vertices
    x = np.unique(vertices[:, 0])
    ends = [vertices[vertices[:, 0] == each, 1] for each in x]
    return x, np.array([(each.min(), each.max()) for each in ends])


def assert_texts_apart(axes):
    """No tick label, axis label or legend runs into another one or out of the figure."""
    figure = axes[0].figure
    figure.canvas.draw()
    boxes = []
    for ax in axes:
        texts = [ax.xaxis.label, ax.yaxis.label, *_tick_labels(ax.xaxis), *_tick_labels(ax.yaxis)]
        legends = [ax.get_legend()] if ax.get_legend() else []
        boxes += [(text, text.get_window_extent()) for text in texts if text.get_text()]
        boxes += [(legend, legend.get_window_extent()) for legend in legends]
    boxes += [(legend, legend.get_window_extent()) for legend in figure.legends]
    for k, (artist, box) in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0, artist
        assert box.y1 <= figure.bbox.y1 + 1, artist
        for other, another in boxes[:k]:
            if _rotation(artist) % 90 == 0 and _rotation(other) % 90 == 0:
                assert not box.overlaps(another), (artist, other)


def _rotation(artist):
    return artist.get_rotation() if hasattr(artist, "get_rotation") else 0


def _tick_labels(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    shown = [tick for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_visible()]
    return [tick.label1 for tick in shown]
