// Package models holds no code, only tests: that the LightGBM reader of backends/model
// gives what LightGBM itself predicted, on the models and predictions that the module
// github.com/dmitryikh/leaves carries in its testdata, and what leaves computes from them.
// They are read where the module's files are; nothing is copied.
//
// It is a module of its own, so that clefbench does not depend on leaves.
package models
