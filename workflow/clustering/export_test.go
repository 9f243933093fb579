package clustering

// Predict lets tests compare the choice with the other rules.
var Predict = predict
