"""What a figure shows, read off its artists."""

import numpy as np


def names_of(ax):
    """Names along the axis of columns, from top to bottom."""
    return [label.get_text() for label in ax.get_yticklabels()]


def line(ax, label):
    """The line or dots with this label in the legend."""
    [found] = [each for each in ax.lines if each.get_label() == label]
    return found


def ends_of(ax, label):
    """Ends of the intervals of each column, (columns, 2)."""
    [found] = [each for each in ax.collections if each.get_label() == label]
    return np.array([segment[:, 0] for segment in found.get_segments()])
