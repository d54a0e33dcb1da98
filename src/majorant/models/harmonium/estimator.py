"""The harmonium without a target."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from majorant._numbers import briefly
from majorant._validation import check_auto, check_choice, check_sample_weight
from majorant.models.harmonium.base import HarmoniumBase
from majorant.models.harmonium.inference import SHAPES
from majorant.models.harmonium.layout import Supervision
from majorant.models.harmonium.tables import distinct_rows, n_rows
from majorant.models.harmonium.views import Bernoulli, View
from majorant.registry import ModelCard, register


@register(
    ModelCard(
        name="harmonium",
        title="multi-view harmonium",
        question="What do several views of the same things have in common, in a few numbers each?",
        kind="representation",
        size_parameter="n_components",
        part="component",
        objective_name="log-loss",
        objective_title="log-loss of every variable given the others, penalised",
        objective_attribute="objective_",
        estimates=("components_", "intercept_", "noise_variance_"),
        shapes=SHAPES,
        objective_set_by=("cd_sweeps", "l2", "method", "n_folds", "select_by", "views"),
        by_target=("harmonium-classifier", "harmonium-regressor"),
    )
)
class Harmonium(HarmoniumBase):
    r"""One representation of rows seen in several views: real numbers, bits and categories, dense or sparse.

    Gaussian latents h tie the views together. With bits x, real columns z (standardised) and s their variances given h,

    .. math:: \log p(x, z, h) = a^\top x + b^\top z - \sum_j \frac{z_j^2}{2 s_j} - \frac{|h|^2}{2}
              + (x - \mu)^\top W h + z^\top U h + \text{const},

    so that :math:`E[h \mid x, z] = m = W^\top (x - \mu) + U^\top z`: the representation of a row is one product, and
    that of a row that lacks a Gaussian view is exact, too. The objective is the penalised block pseudo-likelihood

    .. math:: F = -\frac{1}{D} \sum_d \Bigl[ \sum_i \log p(x_{di} \mid \text{rest}) + \log p(z_d \mid x_d) \Bigr]
              + \frac{\lambda}{2} \Bigl( \sum_i v_i |W_i|^2 + \sum_j |U_j|^2 \Bigr),

    v the variances of the bits (at least 0.01). It is convex in :math:`J = (W; U)(W; U)^\top`: the result does not
    depend on the start and can be certified (`certificate_`). The penalty is on the trace of J, and chooses the number
    of components. Gaussian views alone are penalised factor analysis: variances by L-BFGS, all else in closed form.

    Parameters
    ----------
    n_components : int, default=10
        Largest number of components, at most the number of variables. `rank_` of them are used; the certificate says if
        more would be.
    views : dict of str to view, optional
        Views of X: ``{"tags": Bernoulli([0, 1, 2]), "colour": Gaussian(slice(3, 9))}`` for columns of one table,
        ``{"tags": Bernoulli(), "colour": Gaussian()}`` (or just ``"bernoulli"``, ``"gaussian"``) where X is a
        dictionary of arrays. Columns in no view are not used. By default all columns are one Gaussian view, without
        missing rows. For bits that depend on their neighbours see `Chain`, and `Bernoulli` with edges.
    method : {"pseudo-likelihood", "cd"}, default="pseudo-likelihood"
        Replacement of the log-likelihood, whose constant has no closed form. "pseudo-likelihood": F above. "cd": the
        mean-field contrastive divergence of [2]_, with the exact gradient and with
        :math:`-\frac12 \log \det(I - U^\top S U)` added, which keeps the model proper. It is there for comparison: it
        is not convex and has no certificate. See the guide.
    cd_sweeps : int, default=5
        Number of sweeps of mean field (``method="cd"``).
    l2 : "auto" or float, default="auto"
        :math:`\lambda`. "auto": of `largest_l2_`, which leaves no component, and ten smaller values, each half the one
        before, the one with the best pseudo-likelihood of held-out rows (each fifth distinct row in canonical order; of
        at most 10000), whatever the method; or see `select_by`. No component is kept, and the summary says so, where
        others are not better by more than one standard error of the difference.
    n_folds : int, default=1
        Number of the five folds that are held out in turn to choose the penalty; their losses are averaged. Each costs
        a path of fits; more make the choice less dependent on the held-out rows.
    select_by : str, optional
        Name of a view of bits that `annotate` is to predict from the others. ``l2="auto"`` is then the value with the
        best held-out log-likelihood of that view given the others. The factor of the view's weights in the penalty is
        chosen, too: 1, then 4, 16 and 64 as long as that improves; a larger one keeps predictions of many bits from
        little information away from 0 and 1. By default all variables count, each given all others.
    grow : bool, default=False
        Whether to add components along the directions that the certificate finds, until it finds none.
    init : {"svd", "random"}, default="svd"
        First start: at the principal axes of all views together, or at random weights.
    n_init : "auto" or int, default="auto"
        Number of starts, those after the first at random weights; "auto" is one. With ``method="cd"`` more may find a
        better optimum.
    max_iter : int, default=2000
        Largest number of iterations of L-BFGS.
    tol : float, default=1e-11
        Stop when an iteration lowers the objective by less than this share of it, or no entry of its gradient is larger
        than a tenth of the root of `tol`.
    verbose : int, default=0
        1 shows the starts as they end, on stderr.
    random_state : int, RandomState instance or None, default=None
        Seed of random weights; the start at the principal axes is deterministic.
    n_jobs : int, optional
        Number of threads for blocks of rows; -1 for all processors. The result does not depend on it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_variables)
        (W; U) transposed: real columns first, then bits, then levels of categories. Components are in principal axes:
        the expected latents of the rows are uncorrelated, with falling variance, and each one's largest weight is
        positive.
    intercept_ : ndarray of shape (n_variables,)
        b and a.
    noise_variance_ : ndarray of shape (n_real_columns,)
        s, at least 0.05.
    n_components_ : int
        Number of components that are kept, at least one.
    rank_ : int
        Number of nonzero components: at least a hundredth of the size of the largest.
    l2_, largest_l2_ : float
        :math:`\lambda`, and the smallest value for which the default method uses no component (by at most 10000 rows):
        the largest eigenvalue of minus twice the gradient in J, in units of the penalty, at independent variables.
    l2_path_ : ndarray of shape (n_tried, 2)
        Values that were tried, and the mean held-out loss of each.
    penalty_path_ : ndarray of shape (n_tried, 2)
        With `select_by`: factors of the view in the penalty that were tried, and the held-out loss of each.
    certificate_ : GlobalCertificate
        ``is_global``, ``binds``, ``has_ended``, the verdict as a ``sentence``, and the numbers behind it:
        ``eigenvalue``, ``tolerance``, ``stationarity``.
    objective_ : float
        F, or the penalised contrastive divergence of ``method="cd"``: the mean over rows, in natural logarithms.
    method_ : str
        Method of the fit.
    views_ : tuple of FittedView
        Means, scales and whitening of each view, its columns that vary, and its factor in the penalty.
    n_iter_ : int
    n_samples_ : int
        Number of rows with weight.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had column names.
    search_ : SearchReport
        Every start, and a lower bound for all harmoniums with this penalty if the fit is certified.
    trace_ : Trace
        The objective after every iteration of the start that was kept.

    See Also
    --------
    HarmoniumClassifier, HarmoniumRegressor : The same with a target.
    sklearn.decomposition.FactorAnalysis : One Gaussian view, without penalty.

    References
    ----------
    .. [1] E. Xing, R. Yan, A. Hauptmann, "Mining associated text and images with dual-wing harmoniums", UAI 2005.
    .. [2] N. Chen, J. Zhu, F. Sun, E. Xing, "Large-margin predictive latent subspace learning for multiview data
       analysis", IEEE TPAMI, 2012.

    Examples
    --------
    Ten tags and two measurements that two hidden causes drive; then the tags of rows without tags.

    >>> import numpy as np
    >>> import majorant as mj
    >>> g = np.random.default_rng(0)
    >>> h = g.normal(size=(400, 2))
    >>> tags = (h @ g.normal(size=(2, 10)) > 0).astype(float)
    >>> sizes = h + 0.3 * g.normal(size=(400, 2))
    >>> X = {"tags": tags, "sizes": sizes}
    >>> model = mj.Harmonium(5, views={"tags": mj.Bernoulli(), "sizes": mj.Gaussian()}).fit(X)
    >>> model.certificate_.is_global
    True
    >>> guess = model.annotate({"sizes": sizes}, "tags") > 0.5
    >>> bool((guess == tags).mean() > 0.85)
    True
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        views: Any = None,
        method: str = "pseudo-likelihood",
        cd_sweeps: int = 5,
        l2: float | str = "auto",
        n_folds: int = 1,
        select_by: str | None = None,
        grow: bool = False,
        init: str = "svd",
        n_init: int | str = "auto",
        max_iter: int = 2000,
        tol: float = 1e-11,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.views = views
        self.method = method
        self.cd_sweeps = cd_sweeps
        self.l2 = l2
        self.n_folds = n_folds
        self.select_by = select_by
        self.grow = grow
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or dict of arrays
            One table, or one for each view. If `views` are named, a row may lack some of them: it then holds NaN in all
            columns of the view.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Nonnegative weights, not all zero.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If data, weights or parameters cannot be used; the message says what to change.
        """
        with self._all_or_nothing():
            self._check_parameters()
            views, tables = self._read(X, reset=True)
            self._check_selection(views)
            self._fit(views, tables, sample_weight=sample_weight, supervision=Supervision(), select_by=self.select_by)
        return self

    def _check_parameters(self) -> None:
        check_auto("l2", self.l2)  # by block only where there is a response
        super()._check_parameters()

    def _check_selection(self, views: dict[str, View]) -> None:
        """Check that `select_by` names a view of bits without edges, and that there are others."""
        if self.select_by is None:
            return
        check_choice("select_by", self.select_by, list(views), or_else=" or None")
        view = views[self.select_by]
        if not isinstance(view, Bernoulli) or view.edges is not None:
            raise ValueError(f"select_by={self.select_by!r} must name a view of bits without edges; it is {view.kind}")
        if len(views) == 1:
            raise ValueError(f"select_by={self.select_by!r} is the only view: there are none to tell it from")
        if not isinstance(self.l2, str):
            raise ValueError(
                f"select_by={self.select_by!r} chooses the penalty: give l2='auto'; got l2={briefly(self.l2)}"
            )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the mean log pseudo-likelihood of rows (natural logarithm), without penalty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or dict of arrays
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
            Sum over standardised variables, each given the others.
        """
        check_is_fitted(self)
        tables = self._read(X, reset=False)[1]
        weights = check_sample_weight(sample_weight, n_rows(tables))
        with threadpool_limits(limits=1, user_api="blas"):
            problem, _ = self._problem(distinct_rows(tables, weights, None), reuse=False)
            return problem.gain(self._fitted().parameters)[0] / problem.total_weight
