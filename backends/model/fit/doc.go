// Package fit fits a regularised logistic regression to recorded decisions and writes the
// model.json that package model reads.
//
// Steps: [Fit] sets a sealed hold-out aside (a fixed share of the entities, by a hash that
// no option changes), makes columns of the attributes of the rest, maximises the penalised
// likelihood by Newton's method, calibrates on out-of-fold scores if asked to, and measures
// the finished file on the hold-out, through package model itself, against what is known
// without any attribute. The hold-out is looked at once, for the figures.
//
// It refuses what would not be worth a model: too few rows of a class, classes that the
// columns separate without a penalty, more columns than can be solved. The same rows and
// options give the same bytes.
//
// It does not choose the penalty, does not select features and does not make features of
// texts beyond their most frequent values. What the labels are is the caller's decision.
package fit
