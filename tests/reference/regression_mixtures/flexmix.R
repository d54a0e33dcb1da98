# Mixtures of regressions by flexmix: the best of 50 restarts, and standard errors by its refit().
#
#     Rscript tests/reference/regression_mixtures/flexmix.R FOLDER [CASE ...] > tests/reference/regression_mixtures/flexmix.json
#
# FOLDER holds the tables flexmix_*.csv and mixtools_tonedata.csv, written from the R packages of these names. The
# models are those of flexmix's help pages and vignettes, and some beside them. Every case runs flexmix 50 times from
# its own random start (minprior = 0, so that no component is dropped), and the best of them on to a relative tolerance of
# 1e-13. "log_likelihood" and the numbers of "em" are of that run. flexmix divides the residual sum of squares of a
# gaussian component by n - p, so its run ends near the maximum of the likelihood, not at it: "ml" is what refit() finds
# from there, BFGS on the likelihood itself, with standard errors from second derivatives by differences. Their step is
# 1e-3 whatever the unit of a parameter; where a step of 1/1000 of the standard error changes an error by more than 1e-3,
# those are taken. No "ml": refit() failed.
#
# "largest_eta" is the largest linear predictor of a component in absolute value (above 15 or so a fitted probability
# or rate is 0 or 1 for good: the likelihood rises for ever, and the coefficients are where the run ended).
suppressMessages({library(flexmix); library(jsonlite)})
arguments <- commandArgs(trailingOnly = TRUE)
read <- function(name) read.csv(file.path(arguments[1], name), stringsAsFactors = TRUE)
NPreg <- read("flexmix_NPreg.csv")
NPreg$id1 <- factor(NPreg$id1); NPreg$id2 <- factor(NPreg$id2)
tone <- read("mixtools_tonedata.csv")
salmonella <- read("flexmix_salmonellaTA98.csv")
trypanosome <- read("flexmix_trypanosome.csv")
seizure <- read("flexmix_seizure.csv")
fabricfault <- read("flexmix_fabricfault.csv")
dmft <- read("flexmix_dmft.csv")
dmft$Treatment <- relevel(dmft$Treatment, "control")
tribolium <- read("flexmix_tribolium.csv")
tribolium$Replicate <- factor(tribolium$Replicate)
Mehta <- read("flexmix_Mehta.csv")
Mehta$Site <- factor(Mehta$Site); Mehta$Drug <- relevel(Mehta$Drug, "New")
BregFix <- read("flexmix_BregFix.csv")
BregFix$w <- factor(BregFix$w)
NregFix <- read("flexmix_NregFix.csv")
NregFix$w <- factor(NregFix$w); NregFix$x2 <- factor(NregFix$x2)

P <- FLXMRglm(family = "poisson"); B <- FLXMRglm(family = "binomial")
fixed <- function(...) FLXMRglmfix(...)
seizures <- FLXMRglm(family = "poisson", offset = log(seizure$Hours))
nested <- function(...) list(formula = list(...), k = rep(1, ...length()))
cases <- list(
  NPreg_gaussian = quote(run(yn ~ x + I(x^2), NPreg, 2)),
  NPreg_gaussian_3 = quote(run(yn ~ x + I(x^2), NPreg, 3)),
  NPreg_gaussian_common = quote(run(yn ~ x + I(x^2), NPreg, 2, fixed(varFix = TRUE))),
  NPreg_gaussian_shared = quote(run(yn ~ 1 + x, NPreg, 2, fixed(fixed = ~ I(x^2)))),
  NPreg_poisson = quote(run(yp ~ x, NPreg, 2, P)),
  NPreg_binomial = quote(run(cbind(yb, 1 - yb) ~ x, NPreg, 2, B)),
  NPreg_gaussian_id1 = quote(run(yn ~ x + I(x^2) | id1, NPreg, 2)),
  NPreg_gaussian_id2 = quote(run(yn ~ x + I(x^2) | id2, NPreg, 2)),
  NPreg_poisson_id1 = quote(run(yp ~ x | id1, NPreg, 2, P)),
  NPreg_poisson_id2 = quote(run(yp ~ x | id2, NPreg, 2, P)),
  NPreg_binomial_id1 = quote(run(cbind(yb, 1 - yb) ~ x | id1, NPreg, 2, B)),
  NPreg_binomial_id2 = quote(run(cbind(yb, 1 - yb) ~ x | id2, NPreg, 2, B)),
  NPreg_gaussian_gated = quote(run(yn ~ x + I(x^2), NPreg, 2, gating = ~ yb)),
  NPreg_gaussian_gated_id2 = quote(run(yn ~ x + I(x^2) | id2, NPreg, 2, gating = ~ group_x)),
  tone = quote(run(tuned ~ stretchratio, tone, 2)),
  salmonella = quote(run(y ~ 1, salmonella, 2, fixed(family = "poisson", fixed = ~ x + log(x + 10)))),
  salmonella_own = quote(run(y ~ x + log(x + 10), salmonella, 2, P)),
  trypanosome = quote(run(cbind(Dead, 1 - Dead) ~ 1, trypanosome, 2, fixed(family = "binomial", fixed = ~ log(Dose)))),
  trypanosome_own = quote(run(cbind(Dead, 1 - Dead) ~ log(Dose), trypanosome, 2, B)),
  seizure = quote(run(Seizures ~ Treatment * log(Day), seizure, 2, seizures)),
  fabricfault = quote(run(Faults ~ 1, fabricfault, 2, fixed(family = "poisson", fixed = ~ log(Length)))),
  fabricfault_own = quote(run(Faults ~ log(Length), fabricfault, 2, P)),
  fabricfault_nested = quote(run(Faults ~ 0, fabricfault, 2, fixed(family = "poisson", fixed = ~ log(Length), nested = nested(~ 0, ~ 1)))),
  dmft = quote(run(End ~ 1, dmft, 2, fixed(family = "poisson", fixed = ~ Gender + Ethnic + Treatment))),
  dmft_own = quote(run(End ~ log(Begin + 0.5), dmft, 2, P)),
  dmft_gated = quote(run(End ~ log(Begin + 0.5), dmft, 2, P, gating = ~ Gender + Ethnic + Treatment)),
  tribolium = quote(run(cbind(Remaining, Total - Remaining) ~ 1, tribolium, 2, fixed(family = "binomial", fixed = ~ Species), gating = ~ Replicate)),
  tribolium_3 = quote(run(cbind(Remaining, Total - Remaining) ~ 1, tribolium, 3, fixed(family = "binomial", fixed = ~ Species), gating = ~ Replicate)),
  tribolium_Wang = quote(run(cbind(Remaining, Total - Remaining) ~ 1, tribolium, 2, fixed(family = "binomial", fixed = ~ I(Species == "Confusum")), gating = ~ I(Replicate == 3))),
  tribolium_own = quote(run(cbind(Remaining, Total - Remaining) ~ Species, tribolium, 2, B)),
  Mehta = quote(run(cbind(Response, Total - Response) ~ 1 | Site, Mehta, 3, fixed(family = "binomial", fixed = ~ Drug))),
  Mehta_2 = quote(run(cbind(Response, Total - Response) ~ 1 | Site, Mehta, 2, fixed(family = "binomial", fixed = ~ Drug))),
  Mehta_without_15 = quote(run(cbind(Response, Total - Response) ~ 1 | Site, droplevels(subset(Mehta, Site != 15)), 2, fixed(family = "binomial", fixed = ~ Drug))),
  Mehta_own = quote(run(cbind(Response, Total - Response) ~ Drug | Site, Mehta, 3, B)),
  BregFix_own = quote(run(cbind(yes, no) ~ x, BregFix, 3, B, gating = ~ w)),
  BregFix_shared = quote(run(cbind(yes, no) ~ 1, BregFix, 3, fixed(family = "binomial", fixed = ~ x), gating = ~ w)),
  BregFix_nested = quote(run(cbind(yes, no) ~ 1, BregFix, 3, fixed(family = "binomial", nested = list(formula = c(~ x, ~ 0), k = c(2, 1))), gating = ~ w)),
  NregFix_own = quote(run(y ~ x2 + x1, NregFix, 3, gating = ~ w)),
  NregFix_shared = quote(run(y ~ x1, NregFix, 3, fixed(fixed = ~ x2), gating = ~ w)),
  NregFix_shared_common = quote(run(y ~ x1, NregFix, 3, fixed(fixed = ~ x2, varFix = TRUE), gating = ~ w)),
  NregFix_nested = quote(run(y ~ 1, NregFix, 3, fixed(fixed = ~ x2, nested = list(k = c(2, 1), formula = c(~ x1, ~ 0))), gating = ~ w)),
  NregFix_nested_common = quote(run(y ~ 1, NregFix, 3, fixed(fixed = ~ x2, nested = list(k = c(1, 2), formula = c(~ 0, ~ x1)), varFix = TRUE), gating = ~ w))
)
# A group has one gating: a column that is the same in all rows of it.
NPreg$group_x <- ave(NPreg$x, NPreg$id2)

RESTARTS <- 50
quietly <- function(expression) try(suppressWarnings(suppressMessages(expression)), silent = TRUE)
run <- function(formula, data, k, model = FLXMRglm(), gating = NULL) {
  concomitant <- if (is.null(gating)) FLXPconstant() else FLXPmultinom(gating)
  fit <- function(tolerance, iter.max, ...)
    quietly(flexmix(formula, data = data, k = k, model = model, concomitant = concomitant,
                    control = list(minprior = 0, tolerance = tolerance, iter.max = iter.max), ...))
  ends <- rep(NA_real_, RESTARTS); best <- NULL
  for (seed in 1:RESTARTS) {
    set.seed(seed)
    one <- fit(1e-8, 500)
    if (inherits(one, "try-error") || !is.finite(logLik(one)) || one@k < k) next
    ends[seed] <- logLik(one)
    if (is.null(best) || logLik(one) > logLik(best)) best <- one
  }
  if (is.null(best)) return(list(failed = RESTARTS))
  further <- fit(1e-13, 5000, cluster = posterior(best))
  if (!inherits(further, "try-error") && is.finite(logLik(further)) && logLik(further) >= logLik(best) - 1e-9) best <- further
  at <- function(...) quietly(refit(best, optim_control = list(reltol = 1e-15, maxit = 20000, ...)))
  ml <- at()
  fine <- if (holds(ml)) at(ndeps = sqrt(diag(ml@vcov)) / 1000)
  if (holds(ml) && holds(fine) && max(abs(diag(fine@vcov) / diag(ml@vcov) - 1)) > 2e-3) ml <- fine
  list(
    formula = deparse1(formula), k = k, n = nrow(data), restarts = RESTARTS, failed = sum(is.na(ends)),
    at_best = sum(ends > max(ends, na.rm = TRUE) - 1e-5 * (1 + abs(max(ends, na.rm = TRUE))), na.rm = TRUE),
    log_likelihood = as.numeric(logLik(best)), df = best@df,
    smallest_component = min(colSums(best@posterior$scaled)),
    largest_eta = largest_eta(best), em = numbers(best, flexmix:::FLXgetParameters(best)),
    ml = if (!holds(ml)) NULL
         else c(list(log_likelihood = flexmix:::FLXlogLikfun(best)(ml@coef)), numbers(best, ml@coef, sqrt(diag(ml@vcov))))
  )
}
holds <- function(ml) is(ml, "FLXRoptim") && all(is.finite(diag(ml@vcov))) && all(diag(ml@vcov) > 0)
largest_eta <- function(fit) {
  if (fit@model[[1]]@family == "gaussian") return(NULL)
  link <- get(fit@model[[1]]@family)()$linkfun
  max(sapply(fitted(fit), function(mean) abs(link(pmin(pmax(mean, 1e-300), if (fit@model[[1]]@family == "binomial") 1 - 1e-16 else Inf)))))
}
# The components' coefficients by name, log of sigma among them, and the rows of the concomitant model (the first is 0).
numbers <- function(fit, values, errors = NULL) {
  design <- flexmix:::FLXgetDesign(fit@model[[1]], lapply(fit@components, "[[", 1))
  names <- sub("^.*sigma.*$", "log(sigma)", sub("^coef\\.", "", sub("^(model\\.1_)?(Comp\\.[0-9]+[._])?(coef\\.)?", "", colnames(design))))
  own <- which(!grepl("^concomitant", names(values)))
  stopifnot(length(own) == ncol(design))
  by_component <- function(v) lapply(seq_len(fit@k), function(j) {
    used <- which(design[j, ] == 1)
    setNames(as.list(unname(v[own][used])), names[used])
  })
  gating <- grep("^concomitant", names(values))
  by_row <- function(v) if (fit@k > 1) matrix(v[gating], nrow = fit@k - 1, byrow = TRUE)
  terms <- if (fit@k > 1) unique(sub("^concomitant_Comp\\.[0-9]+\\.", "", names(values)[gating]))
  c(list(components = by_component(values), concomitant_terms = I(terms), concomitant = by_row(values)),
    if (!is.null(errors)) list(errors = by_component(errors), concomitant_errors = by_row(errors)))
}
chosen <- if (length(arguments) > 1) arguments[-1] else names(cases)
found <- list()
for (name in chosen) {
  began <- proc.time()[[1]]
  found[[name]] <- c(list(call = deparse1(cases[[name]])), eval(cases[[name]]))
  message(sprintf("%-28s %14.6f %14.6f  at best %2d failed %2d  %.0f s", name, found[[name]]$log_likelihood,
                  if (is.null(found[[name]]$ml)) NA else found[[name]]$ml$log_likelihood, found[[name]]$at_best, found[[name]]$failed, proc.time()[[1]] - began))
}
versions <- list(R = R.version.string, flexmix = as.character(packageVersion("flexmix")))
cat(toJSON(list(versions = versions, cases = found), auto_unbox = TRUE, digits = 10, pretty = 1, null = "null"), "\n")
