# R's methods on one table, a line a run: method, CPU seconds, objective. Called by contenders.py.
#
#     Rscript contenders.R TABLE kmeans|gaussian|regression K DETAIL SEEDS

arguments <- commandArgs(trailingOnly = TRUE)
table <- read.csv(arguments[1])
k <- as.integer(arguments[3])
detail <- arguments[4]
seeds <- as.integer(arguments[5])

run <- function(method, fit, package = "stats", repeats = seeds) {
    found <- suppressWarnings(suppressMessages(require(package, character.only = TRUE, quietly = TRUE)))
    if (!found) {
        cat(sprintf("\"%s\",missing,R has no package %s\n", method, package))
        return(invisible())
    }
    for (seed in 0:repeats) {  # run 0 is to load what a first fit loads
        set.seed(seed)
        value <- NA
        began <- proc.time()
        capture.output(suppressWarnings(suppressMessages(try(value <- fit(), silent = TRUE))))
        spent <- sum((proc.time() - began)[1:2])
        if (seed > 0) cat(sprintf("\"%s\",%.4f,%.12g\n", method, spent, as.numeric(value)))
    }
}

if (arguments[2] == "kmeans") {
    rows <- as.matrix(table)
    run("R kmeans, nstart=10", function() kmeans(rows, k, iter.max = 100, nstart = 10)$tot.withinss)
}

if (arguments[2] == "gaussian") {
    kind <- c(full = "VVV", tied = "EEE", diag = "VVI", spherical = "VII")[[detail]]
    # mclust begins with a hierarchical clustering: no seed changes it
    run("mclust", function() Mclust(table, G = k, modelNames = kind, verbose = FALSE)$loglik, "mclust", min(seeds, 3))
}

if (arguments[2] == "regression") {
    features <- setdiff(names(table), c("y", "trials", "gating", "groups"))
    response <- if (detail == "binomial") "cbind(y, trials - y)" else "y"
    units <- if ("groups" %in% names(table)) "| groups" else ""
    formula <- as.formula(paste(response, "~", paste(features, collapse = " + "), units))
    driver <- function() FLXMRglm(family = detail)
    weights <- function() if ("gating" %in% names(table)) FLXPmultinom(~gating) else FLXPconstant()
    one <- function() logLik(flexmix(formula, data = table, k = k, model = driver(), concomitant = weights()))
    run("flexmix, 1 start", one, "flexmix")
    best <- function() {
        logLik(initFlexmix(formula, data = table, k = k, model = driver(), concomitant = weights(), nrep = 10, verbose = FALSE))
    }
    run("flexmix, best of 10", best, "flexmix")
    columns <- as.matrix(table[features])
    is_plain <- !any(c("groups", "gating") %in% names(table))
    if (is_plain && detail == "gaussian") run("mixtools", function() regmixEM(table$y, columns, k = k)$loglik, "mixtools")
    if (is_plain && detail == "poisson") run("mixtools", function() poisregmixEM(table$y, columns, k = k)$loglik, "mixtools")
}
