# Design matrices of R's model.matrix, for tests/formulas.
#
#     Rscript tests/reference/model_matrix.R > tests/reference/model_matrix.csv
#
# One line a column of a design. The table is made here and in the test by the same arithmetic.
n <- 12
i <- 0:(n - 1)
table <- data.frame(
  y = (7 * i) %% 5 + 0.5,
  x = (5 * i) %% 12 / 4 - 1,
  z = (i * i) %% 7 + 1,
  g = c("b", "a", "c")[(2 * i) %% 3 + 1],
  h = c("u", "v")[(i %/% 2) %% 2 + 1],
  k = (i %/% 3) %% 3 + 1,
  `a b` = i / 2,
  check.names = FALSE, stringsAsFactors = TRUE
)
# as written here, and as R writes it
formulas <- list(
  c("y ~ x"), c("y ~ x + I(x**2)", "y ~ x + I(x^2)"), c("y ~ x * z"), c("y ~ x:z"), c("y ~ g"), c("y ~ 0 + g"),
  c("y ~ x + g - 1"), c("y ~ g * x"), c("y ~ g:x"), c("y ~ g * h"), c("y ~ 0 + g:h"), c("y ~ g + g:x"),
  c("y ~ factor(k) * x"), c("y ~ (x + z + g)**2", "y ~ (x + z + g)^2"), c("y ~ h / x"), c("y ~ log(z) + sqrt(z)"),
  c("y ~ poly(x, 2)"), c("y ~ poly(x, 3) + g"), c("y ~ scale(x) + exp(z / 4)"), c("y ~ C(g, contr.sum)"),
  c("y ~ C(g, contr.helmert)"), c("y ~ bs(x, df=5)", "y ~ splines::bs(x, df = 5)"), c("y ~ ."),
  c("y ~ 0 + I(x > 0)"), c("y ~ I(x > 0):z"), c("y ~ 0 + I(x > 0):g"), c("y ~ I(x > 0) * I(z > 3)"), c("y ~ x / I(z > 3)"),
  c("y ~ I((x > 0) + (z > 3))"), c("y ~ I((x > 0) * (z > 3)) - 1"), c("y ~ I(-(x > 0)) + exp(z > 3)"),
  c("y ~ I((x > 0) & (z > 3))"), c("y ~ 0 + I((x > 0) | (z > 3))"), c("y ~ I(~(x > 0))", "y ~ I(!(x > 0))"),
  c("y ~ factor(z > 3) + scale(x > 0)", "y ~ factor(z > 3) + scale(as.numeric(x > 0))"), c("y ~ x + x %in% g"),
  c("y ~ (g + h):x"), c("y ~ g * h - h"), c("y ~ (g + h + x)**2 - g:h", "y ~ (g + h + x)^2 - g:h"), c("y ~ offset(x) + z"),
  c("y ~ bs(x, knots=[0, 1], degree=2):g", "y ~ splines::bs(x, knots = c(0, 1), degree = 2):g"),
  c("y ~ x + `a b`"), c("y ~ C(g, contr.treatment('b'))", "y ~ C(g, contr.treatment(levels(g), base = 2))")
)
cat("formula,column,", paste0("row", seq_len(n), collapse = ","), "\n", sep = "")
for (pair in formulas) {
  design <- model.matrix(as.formula(pair[length(pair)]), table)
  for (j in seq_len(ncol(design)))
    cat(sprintf('"%s","%s",%s\n', pair[1], colnames(design)[j], paste(sprintf("%.17g", design[, j]), collapse = ",")))
}
