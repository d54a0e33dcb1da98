# Mixtures of regressions by mixtools: the best of 50 restarts, for the guide "From flexmix and mixtools to majorant".
#
#     Rscript tests/reference/regression_mixtures/mixtools.R FOLDER > tests/reference/regression_mixtures/mixtools.json
#
# FOLDER holds mixtools_tonedata.csv, mixtools_NOdata.csv and mixtools_CO2data.csv, written from the R
# packages of these names. Every call runs 50 times (hmeEM 5 times: some of its starts begin again without end) from
# mixtools' own random start, until a step gains less than 1e-9. A run that ends with an error, or on a line through few
# rows (largest sigma over smallest above 15), is counted and left out.
suppressMessages({library(mixtools); library(jsonlite)})
folder <- commandArgs(trailingOnly = TRUE)[1]
read <- function(name) read.csv(file.path(folder, name))
tone <- read("mixtools_tonedata.csv"); NO <- read("mixtools_NOdata.csv"); CO2 <- read("mixtools_CO2data.csv")
gaussian <- function(y, x, k, ...) function() regmixEM(y, x, k = k, epsilon = 1e-9, maxit = 20000, ...)
cases <- list(
  tone = gaussian(tone$tuned, tone$stretchratio, 2),
  tone_common = gaussian(tone$tuned, tone$stretchratio, 2, arbvar = FALSE),
  NOdata = gaussian(NO$Equivalence, NO$NO, 2),
  CO2 = gaussian(CO2$CO2, CO2$GNP, 2),
  NOdata_experts = function() hmeEM(NO$Equivalence, NO$NO, k = 2, epsilon = 1e-9, maxit = 20000)
)
quietly <- function(expression) { sink(nullfile()); on.exit(sink()); try(suppressWarnings(suppressMessages(expression)), silent = TRUE) }
found <- list()
for (name in names(cases)) {
  best <- NULL; spurious <- 0; began <- proc.time()[[1]]
  restarts <- if (name == "NOdata_experts") 5 else 50; ends <- rep(NA_real_, restarts)
  for (seed in 1:restarts) {
    set.seed(seed)
    fit <- quietly(cases[[name]]())
    if (inherits(fit, "try-error") || !is.finite(fit$loglik)) next
    if (!is.null(fit$sigma) && max(fit$sigma) > 15 * min(fit$sigma)) { spurious <- spurious + 1; next }
    ends[seed] <- fit$loglik
    if (is.null(best) || fit$loglik > best$loglik) best <- fit
  }
  found[[name]] <- list(
    restarts = restarts, failed = sum(is.na(ends)) - spurious, spurious = spurious,
    at_best = sum(ends > max(ends, na.rm = TRUE) - 1e-3, na.rm = TRUE), log_likelihood = best$loglik,
    coef = t(best$beta), sigma = best$sigma, weights = if (is.matrix(best$lambda)) colMeans(best$lambda) else best$lambda, gating = best$w
  )
  message(sprintf("%-16s %12.6f  at best %d, failed %d, spurious %d, %.0f s", name, best$loglik, found[[name]]$at_best,
                  found[[name]]$failed, spurious, proc.time()[[1]] - began))
}
versions <- list(R = R.version.string, mixtools = as.character(packageVersion("mixtools")))
cat(toJSON(list(versions = versions, cases = found), auto_unbox = TRUE, digits = 10, pretty = 1, null = "null"), "\n")
