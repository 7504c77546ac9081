"""Trees that a run has kept, and those that a step has at hand, in the one form that both have."""

from pymc_xbart.forest.stored import read_draw


def texts(idata, name="f"):
    """Text of each draw of a forest, (chain, draw) of str."""
    [*_, last] = (stat := idata["sample_stats"][f"{name}_trees"]).dims
    return stat.isel({last: 0}).transpose("chain", "draw").values.astype(object)


def text_at_hand(step, name="f"):
    """Text of the trees that a step would go on from."""
    [target] = [target for target in step._targets if target.name == name]
    return target.write(step.forests[name])


def num_nodes(text):
    """Nodes of all trees of one draw."""
    return sum(stored.forest.column.size for stored in read_draw(text).forests)
