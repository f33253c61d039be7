// Empty: a function without a body compiles only beside an assembly file.
