# BIC of mclust's own search on iris, for the models of latent profile analysis.
#   Rscript tests/reference/mclust_profiles.R > tests/reference/mclust_profiles.csv
suppressPackageStartupMessages(library(mclust))
cat("model,k,bic\n")
for (model in c("EEI", "VVI", "EEE", "VVV")) for (k in 2:3)
  cat(sprintf("%s,%d,%.4f\n", model, k, mclustBIC(iris[, 1:4], G = k, modelNames = model)[1, 1]))
