# Best log-likelihoods of flexmix by formula, of 8 random starts each.
#
#     Rscript tests/reference/flexmix_formulas.R FOLDER > tests/reference/flexmix_formulas.csv
#
# FOLDER holds flexmix_seizure.csv, flexmix_trypanosome.csv and flexmix_tribolium.csv (flexmix's data sets). Columns: the
# table, our formula with its gating and family, and the log-likelihood of two components.
suppressMessages(library(flexmix))
set.seed(1)
folder <- commandArgs(trailingOnly = TRUE)[1]
table <- function(name) read.csv(file.path(folder, paste0("flexmix_", name, ".csv")))
best <- function(...) {
  control <- list(iter.max = 1000, tolerance = 1e-10, minprior = 0)
  fits <- lapply(1:8, function(i) suppressWarnings(try(flexmix(..., k = 2, control = control), silent = TRUE)))
  max(sapply(Filter(function(fit) !inherits(fit, "try-error"), fits), logLik))
}
cat("table,formula,gating,family,log_likelihood\n")
line <- function(...) cat(sprintf('%s,"%s",%s,%s,%.10g\n', ...))
data <- table("seizure")
line("seizure", "Seizures ~ Treatment * log(Day) + offset(log(Hours))", "", "poisson",
     best(Seizures ~ Treatment * log(Day), data = data, model = FLXMRglm(family = "poisson", offset = log(data$Hours))))
data <- table("trypanosome")
line("trypanosome", "cbind(Dead, 1 - Dead) ~ log(Dose)", "", "binomial",
     best(cbind(Dead, 1 - Dead) ~ log(Dose), data = data, model = FLXMRglm(family = "binomial")))
data <- table("tribolium")
line("tribolium", "cbind(Remaining, Total - Remaining) ~ Species", "Replicate", "binomial",
     best(cbind(Remaining, Total - Remaining) ~ Species, data = data, model = FLXMRglm(family = "binomial"),
          concomitant = FLXPmultinom(~Replicate)))
