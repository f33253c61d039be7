"""Writes the models and predictions of this directory with XGBoost itself.

Made with xgboost 1.7.4 (Debian bookworm's python3-xgboost): python3 golden.py
Each NAME.json is a model, and NAME.tsv has a line a row: the features ("nan" is missing),
then after a "|" the raw margins, after another the probabilities as predict() gave them,
and, where there is a third, the contributions of predict(pred_contribs=True,
approx_contribs=True), the bias last.
"""
import numpy as np
import xgboost as xgb

rng = np.random.default_rng(4)


def data(n, missing=0.15):
    x = rng.normal(size=(n, 6)).astype(np.float64)
    x[:, 3] = rng.integers(0, 9, size=n)  # ties with thresholds
    x[:, 4] = np.exp(x[:, 4] * 3)
    logit = 1.5 * x[:, 0] - x[:, 1] * x[:, 2] + 0.4 * (x[:, 3] - 4) + 0.3 * np.log(x[:, 4])
    x[rng.random(x.shape) < missing] = np.nan
    return x, logit + rng.logistic(size=n)


def write(name, booster, d, x, contribs=False):
    booster.save_model(name + ".json")
    margin = booster.predict(d, output_margin=True)
    p = booster.predict(d)
    with open(name + ".tsv", "w") as f:
        for i in range(len(x)):
            parts = [x[i], np.atleast_1d(margin[i]), np.atleast_1d(p[i])]
            if contribs:
                parts.append(booster.predict(d, pred_contribs=True, approx_contribs=True)[i])
            f.write("|".join(" ".join("%.17g" % v for v in part) for part in parts) + "\n")


names = ["a", "b", "c", "d", "e", "f"]
x, y = data(800)
t, _ = data(80)
common = {"max_depth": 4, "eta": 0.3, "tree_method": "hist", "seed": 1, "nthread": 1}
train = xgb.DMatrix(x, (y > 0).astype(int), feature_names=names)
test = xgb.DMatrix(t, feature_names=names)
write("binary", xgb.train({**common, "objective": "binary:logistic", "base_score": 0.3}, train, 30), test, t, True)
write("dart", xgb.train({**common, "objective": "binary:logistic", "booster": "dart", "rate_drop": 0.3}, train, 15), test, t)
write("forest", xgb.train({**common, "objective": "binary:logistic", "num_parallel_tree": 5, "subsample": 0.7}, train, 4), test, t)
multi = xgb.DMatrix(x, np.digitize(y, [-1.5, 1]), feature_names=names)
write("softprob", xgb.train({**common, "objective": "multi:softprob", "num_class": 3}, multi, 10), test, t)


def categorical(n):
    x = np.stack([rng.integers(0, 4, n), rng.integers(0, 40, n), rng.normal(size=n)], 1).astype(np.float64)
    logit = np.where(x[:, 0] == 2, 2, -1) + np.sin(x[:, 1] * 7) * 2 + x[:, 2]
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, logit + rng.logistic(size=n)


names, kinds = ["few", "many", "number"], ["c", "c", "q"]
x, y = categorical(1500)
t, _ = categorical(100)
t[:8, 1] = [39, 40, 41, 63, 64, 100, 1000, 12.5]  # codes that training never saw
train = xgb.DMatrix(x, (y > 0).astype(int), feature_names=names, feature_types=kinds, enable_categorical=True)
test = xgb.DMatrix(t, feature_names=names, feature_types=kinds, enable_categorical=True)
write("categories", xgb.train({**common, "objective": "binary:logistic", "max_cat_to_onehot": 5}, train, 20), test, t)
