"""Redraw single splits of a tree, given the other trees (floor 0: NumPy and Numba only).

A site is a node that is a leaf, or whose children both are. One is drawn, and what happens there is
drawn anew, among stopping and all candidate cuts with two leaves below: growing, pruning and
changing (Chipman, George & McCulloch 1998) in one move. With s the number of sites of a tree and pi
the posterior of the trees given the others, leaf values integrated out, the outcome T' is drawn
with probability proportional to

    pi(T') / s(T')

which leaves pi as it is, since it is the conditional of T' given the site where sites are drawn
uniformly. In these weights, children that could not be split further are taken for ones that could,
because only looking at each would tell; a Metropolis-Hastings test makes up for it.
"""

import numpy as np

from pymc_xbart.kernels.chunks import split_rows
from pymc_xbart.kernels.columns import draw_subset
from pymc_xbart.kernels.decorator import POSITION_DTYPE, inner_kernel
from pymc_xbart.kernels.draw import log_sum_exp
from pymc_xbart.kernels.evidence import sums_of_node
from pymc_xbart.kernels.grow import draw_option
from pymc_xbart.kernels.leaf_numbers import has_room
from pymc_xbart.kernels.node_cuts import lone_node
from pymc_xbart.kernels.partition import gather_leaves, open_root
from pymc_xbart.kernels.records import NO_CHILD, NO_COLUMN
from pymc_xbart.kernels.score import draw_cut, has_cuts, score_node, split_probability
from pymc_xbart.kernels.tree import add_node, draw_leaf_values, load_tree, sum_leaves

SPLITS_PER_TREE = 2  # more of them move f less than they cost, once trees hold each other in place


@inner_kernel
def redraw_splits(forest, index, leaf, h, design, prior, curvature, choice, work, rng):
    """Draw a successor of tree `index` of the forest, some splits apart from it, with leaf values.

    `work` must have taken up g of the forest without the tree.

    Parameters
    ----------
    leaf : (n,) uint16 or int32
        Leaf of each row in the tree; overwritten.
    h : (n,) float64
    choice : ColumnChoice
        The same for all nodes.

    Returns
    -------
    int
        Number of nodes of the successor, which is `work.tree`. Where they are too many for `leaf`,
        it is not finished.
    """
    tree = work.tree
    num_nodes = load_tree(forest, index, tree)
    for _ in range(SPLITS_PER_TREE):
        num_nodes = redraw_split(
            tree, num_nodes, leaf, h, design, prior, curvature, choice, work, rng
        )
        if not has_room(leaf, num_nodes):
            return num_nodes
    sum_leaves(tree, num_nodes, leaf, h, curvature, work.rows)
    draw_leaf_values(tree, num_nodes, prior.leaf_var, rng)
    return num_nodes


@inner_kernel
def redraw_split(tree, num_nodes, leaf, h, design, prior, curvature, choice, work, rng):
    """Redraw what happens at one site. Returns the new number of nodes."""
    scores = work.scores
    site = draw_site(tree, num_nodes, rng)
    old_column = tree[site]["column"]
    node = gather_site(tree, site, leaf, h, curvature, work.rows)
    if choice.is_per_tree:
        work.site_column[0] = old_column
        draw_subset(work.site_column, choice, rng)
    score_node(
        design, prior, curvature, choice, work.rows, node, work.scratch, scores, work.crew, rng
    )
    log_stop = np.log1p(-split_probability(prior, node.depth + 1))  # of a child that has cuts
    weigh_splits(tree, num_nodes, site, log_stop, choice, scores)
    option = draw_option(scores, rng)
    column = np.int32(NO_COLUMN)
    cut = np.int32(0)
    if option < scores.num_considered[0]:
        column = scores.considered[option]
        cut = draw_cut(design, prior, curvature, work.rows, node, column, work.scratch, rng)
    elif old_column == NO_COLUMN:
        return num_nodes
    if log_stop < 0.0:
        old_cut = tree[site]["cut"]
        more = num_dead_ends(design, prior, curvature, node, column, cut, work)
        more -= num_dead_ends(design, prior, curvature, node, old_column, old_cut, work)
        if more < 0 and np.log(rng.random()) >= -more * log_stop:
            return num_nodes
    if column == NO_COLUMN:
        return merge_children(tree, num_nodes, site, leaf)
    return put_split(
        tree, num_nodes, site, column, cut, design.codes[column], node, work.rows, leaf
    )


@inner_kernel
def is_leaf(tree, node):
    """Whether a node does not split."""
    return tree[node]["column"] == NO_COLUMN


@inner_kernel
def is_site(tree, node):
    """Whether a node is a leaf, or a split whose children both are."""
    left = tree[node]["left"]
    return is_leaf(tree, node) or (is_leaf(tree, left) and is_leaf(tree, left + 1))


@inner_kernel
def num_sites(tree, num_nodes):
    """How many sites a tree has."""
    count = 0
    for node in range(num_nodes):
        count += is_site(tree, node)
    return count


@inner_kernel
def draw_site(tree, num_nodes, rng):
    """Draw one of the sites of a tree, all of them alike."""
    remaining = np.int64(rng.random() * num_sites(tree, num_nodes))
    node = np.int64(0)
    while remaining > 0 or not is_site(tree, node):
        remaining -= is_site(tree, node)
        node += 1
    return node


@inner_kernel
def gather_site(tree, site, leaf, h, curvature, rows):
    """Put the rows of a site into `rows`. Returns the site as a node to be scored."""
    start = np.int64(0)
    if site == 0:
        stop = np.int64(leaf.size)
        total, sum_h = open_root(h, curvature.is_whole, rows)
    else:
        first = site if is_leaf(tree, site) else np.int64(tree[site]["left"])
        start, stop, total, sum_h = gather_leaves(
            *(h, curvature.is_whole, leaf, first, 1 if first == site else 2, rows)
        )
    sum_g, sum_h = sums_of_node(total, sum_h, rows, curvature)
    return lone_node(np.int32(start), np.int32(stop), tree[site]["depth"], sum_g, sum_h)


@inner_kernel
def weigh_splits(tree, num_nodes, site, log_stop, choice, scores):
    """Turn the scores of a site into weights of its outcomes.

    To a score, which sets prior times evidence of a split against those of stopping, this adds that
    both children stop, how many sites there are then, and how likely it is to consider these
    columns: all of them, except that of the split, are considered by chance.
    """
    num_considered = scores.num_considered[0]
    split_sites, leaf_sites = num_sites_with(tree, num_nodes, site)
    extra = 2.0 * log_stop + np.log(leaf_sites / split_sites) + scores.log_share[0]
    for k in range(num_considered):
        scores.log_weight[k] += extra
        if choice.is_per_tree:
            scores.log_weight[k] -= np.log(choice.share[scores.considered[k]])
    scores.log_total[0] = log_sum_exp(scores.log_weight, num_considered + 1)


@inner_kernel
def num_sites_with(tree, num_nodes, site):
    """How many sites a tree has if one of them splits, and if it is a leaf."""
    count = num_sites(tree, num_nodes)
    # Two children are gained or lost, and the parent is a site only while its children are leaves.
    change = 2
    for node in range(site):
        left = tree[node]["left"]
        if left == site or (left != NO_CHILD and left + 1 == site):
            sibling = left + 1 if left == site else left
            change -= is_leaf(tree, sibling)
    if is_leaf(tree, site):
        return count + change, count
    return count, count - change


@inner_kernel
def num_dead_ends(design, prior, curvature, node, column, cut, work):
    """How many sides of a split have no cuts; 0 without a column."""
    if column == NO_COLUMN:
        return 0
    codes = design.codes[column]
    if prior.min_samples_leaf == 1:
        return 2 - (
            is_side_varied(design, prior, work.rows, node, codes, cut, False)
            + is_side_varied(design, prior, work.rows, node, codes, cut, True)
        )
    front, middle, back, _, _, _, _, _ = split_rows(
        *(codes, column, cut, work.rows, node.start, node.stop, curvature.is_whole, work.crew)
    )
    num_sides = 0
    for start, stop in ((front, middle), (middle, back)):
        child = lone_node(np.int32(start), np.int32(stop), np.int32(node.depth + 1), 0.0, 0.0)
        num_sides += has_cuts(design, prior, curvature, work.rows, child, work.scratch)
    return 2 - num_sides


@inner_kernel
def is_side_varied(design, prior, rows, node, codes, cut, is_right):
    """Whether any column tells apart some of a node's rows on one side of a cut.

    Mostly seen in the first few: no need to know where the others belong.
    """
    row = rows.row
    first = np.int64(-1)
    for i in range(node.start, node.stop):
        if (codes[row[i]] > cut) != is_right:
            continue
        if first < 0:
            first = np.int64(row[i])
            continue
        for v in range(design.num_codes.size):
            if prior.split_weights[v] > 0.0 and design.codes[v, row[i]] != design.codes[v, first]:
                return True
    return False


@inner_kernel
def put_split(tree, num_nodes, site, column, cut, codes, node, rows, leaf):
    """Let a site split, if `leaf` has room for it. Returns the new number of nodes."""
    is_new = is_leaf(tree, site)
    left = np.int64(num_nodes) if is_new else np.int64(tree[site]["left"])
    num_nodes = num_nodes + 2 if is_new else num_nodes
    if not has_room(leaf, num_nodes):
        return num_nodes
    tree[site]["column"] = column
    tree[site]["cut"] = send_rows(codes, cut, left, node, rows, leaf)
    tree[site]["left"] = left
    depth = np.int32(tree[site]["depth"] + 1)
    add_node(tree, left, np.int32(0), np.int32(0), depth, 0.0, 0.0)
    add_node(tree, left + 1, np.int32(0), np.int32(0), depth, 0.0, 0.0)
    return num_nodes


@inner_kernel
def send_rows(codes, cut, left, node, rows, leaf):
    """Write nodes `left` and `left + 1` to the leaves of the rows on either side of a cut.

    Returns the largest code on the left: the same split, named by a value that occurs in the node.
    """
    row = rows.row
    last_left = np.int64(0)
    if node.start == 0:  # the root, whose rows are all there are, in order
        for i in range(POSITION_DTYPE(leaf.size)):
            leaf[i] = left + (codes[i] > cut)
            last_left = max(last_left, left_code(codes[i], cut))
        return last_left
    start, stop = POSITION_DTYPE(node.start), POSITION_DTYPE(node.stop)
    # As one loop, LLVM makes a branch of it, which no processor could guess: four times as long.
    for k in range(start, stop):
        leaf[row[k]] = left + (codes[row[k]] > cut)
    for k in range(start, stop):
        last_left = max(last_left, left_code(codes[row[k]], cut))
    return last_left


@inner_kernel
def left_code(code, cut):
    """The code itself on the left of a cut, 0 on the right, without a branch."""
    return np.int64(code) & (np.int64(code > cut) - np.int64(1))


@inner_kernel
def merge_children(tree, num_nodes, site, leaf):
    """Let a site stop, and close the gap that its children leave. Returns the number of nodes."""
    gap = tree[site]["left"]
    tree[site]["column"] = NO_COLUMN
    tree[site]["cut"] = 0
    tree[site]["left"] = NO_CHILD
    for node in range(num_nodes):
        if tree[node]["left"] > gap:
            tree[node]["left"] -= 2
    for node in range(gap + 2, num_nodes):
        tree[node - 2] = tree[node]
    for i in range(leaf.size):
        if leaf[i] > gap + 1:
            leaf[i] -= 2
        elif leaf[i] >= gap:
            leaf[i] = site
    return num_nodes - 2
