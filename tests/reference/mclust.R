# Best log-likelihoods that mclust reaches: its own default (hierarchical) start, and EM from many random partitions.
#
#     Rscript tests/reference/mclust.R FOLDER > tests/reference/mclust.csv
#
# FOLDER holds base_faithful.csv, mclust_banknote.csv, MASS_crabs.csv and iris.csv (scikit-learn's four columns). mclust names its models by volume, shape and orientation: VVV is
# scikit-learn's "full", EEE "tied", VVI "diag", VII "spherical". A solution counts when the smallest eigenvalue of
# every S^-1/2 Sigma_k S^-1/2 is at least 5e-4 (S is the total covariance) and every component has at least 2 (d + 1)
# rows (3 for d = 1; no rule for EEE).
suppressMessages(library(mclust))
folder <- commandArgs(trailingOnly = TRUE)[1]
read <- function(name) read.csv(file.path(folder, name))
numbers <- function(frame, columns) as.matrix(frame[, columns])
sets <- list(
  faithful = numbers(read("base_faithful.csv"), c("eruptions", "waiting")),
  banknote = numbers(read("mclust_banknote.csv"), c("Length", "Left", "Right", "Bottom", "Top", "Diagonal")),
  crabs = numbers(read("MASS_crabs.csv"), c("FL", "RW", "CL", "CW", "BD"))
)
sets$iris <- as.matrix(read("iris.csv"))
models <- c(full = "VVV", tied = "EEE", diag = "VVI", spherical = "VII")
regular <- function(fit, X) {
  n <- nrow(X); d <- ncol(X); S <- cov(X) * (n - 1) / n
  root <- solve(chol(S))
  sizes <- colSums(fit$z)
  least <- min(apply(fit$parameters$variance$sigma, 3, function(C) min(eigen(t(root) %*% C %*% root, TRUE)$values)))
  enough <- if (d == 1) 3 else 2 * (d + 1)
  least >= 5e-4 && (fit$modelName == "EEE" || min(sizes) >= enough)
}
control <- emControl(tol = 1e-12, itmax = 20000)
cat("data,covariance_type,n_components,default,best,n_reached\n")
set.seed(1)
for (name in names(sets)) for (type in names(models)) for (K in 1:4) {
  X <- sets[[name]]; n <- nrow(X); found <- c(); default <- NA
  own <- suppressWarnings(Mclust(X, G = K, modelNames = models[[type]], control = control, verbose = FALSE))
  if (!is.null(own) && regular(own, X)) { default <- own$loglik; found <- own$loglik }
  if (K > 1) for (trial in 1:80) {
    z <- if (trial %% 2 == 0) unmap(suppressWarnings(kmeans(if (trial %% 4 == 0) scale(X) else X, K, iter.max = 3))$cluster)
         else unmap(sample(rep_len(1:K, n)))
    fit <- try(suppressWarnings(me(X, modelName = models[[type]], z = z, control = control)), silent = TRUE)
    if (!inherits(fit, "try-error") && isTRUE(is.finite(fit$loglik)) && regular(fit, X)) found <- c(found, fit$loglik)
  }
  best <- if (length(found)) max(found) else NA
  cat(sprintf("%s,%s,%d,%.6f,%.6f,%d\n", name, type, K, default, best, sum(found > best - 1e-4)))
}
