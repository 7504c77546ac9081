"""What draws of f are judged by where f is known; the same code for all methods."""

import numpy as np
from arviz_stats.base import array_stats

INTERVAL = (0.025, 0.975)


def judge(f: np.ndarray, f_true: np.ndarray) -> dict[str, float]:
    """Judge draws of f, (chains, draws, rows), by its true values, (rows,)."""
    f = f.astype(float)  # float32 would be short of digits for ESS
    ess = array_stats.ess(f, chain_axis=0, draw_axis=1, method="bulk")
    r_hat = array_stats.rhat(f, chain_axis=0, draw_axis=1)
    low, high = np.quantile(f, INTERVAL, axis=(0, 1))
    return {
        "ess": float(np.median(ess)),
        "rhat_median": float(np.median(r_hat)),
        "rhat_max": float(np.max(r_hat)),
        "rmse": float(np.sqrt(np.mean((f.mean(axis=(0, 1)) - f_true) ** 2))),
        "coverage": float(np.mean((low < f_true) & (f_true < high))),
    }
