"""What `import majorant` offers: one line a name, the only list of them; nothing is imported before it is used."""

from majorant import energy as energy
from majorant import metrics as metrics
from majorant import plot as plot
from majorant.data import Chunks as Chunks
from majorant.data.opening import open_rows as open_rows
from majorant.engine import Balance as Balance
from majorant.engine import Biased as Biased
from majorant.engine import BoundError as BoundError
from majorant.engine import Coherence as Coherence
from majorant.engine import GibbsLimit as GibbsLimit
from majorant.engine import GrowingSubset as GrowingSubset
from majorant.engine import MultiFold as MultiFold
from majorant.engine import PairConstraints as PairConstraints
from majorant.engine import RandomWalk as RandomWalk
from majorant.engine import Solution as Solution
from majorant.engine import Tempered as Tempered
from majorant.engine import Tightest as Tightest
from majorant.engine import Trace as Trace
from majorant.engine import minimize as minimize
from majorant.engine.checkpoint import CheckpointError as CheckpointError
from majorant.models.bag_of_words import ReconfigurableBagOfWords as ReconfigurableBagOfWords
from majorant.models.discriminative_clustering import DiscriminativeClustering as DiscriminativeClustering
from majorant.models.discriminative_latent_classes import DiscriminativeLatentClasses as DiscriminativeLatentClasses
from majorant.models.gaussian_mixture import GaussianMixture as GaussianMixture
from majorant.models.harmonium import Bernoulli as Bernoulli
from majorant.models.harmonium import Categorical as Categorical
from majorant.models.harmonium import Chain as Chain
from majorant.models.harmonium import Gaussian as Gaussian
from majorant.models.harmonium import Harmonium as Harmonium
from majorant.models.harmonium import HarmoniumClassifier as HarmoniumClassifier
from majorant.models.harmonium import HarmoniumRegressor as HarmoniumRegressor
from majorant.models.hidden_markov import HiddenMarkovModel as HiddenMarkovModel
from majorant.models.kmeans import KMeans as KMeans
from majorant.models.kmedoids import KMedoids as KMedoids
from majorant.models.latent_class_analysis import LatentClassAnalysis as LatentClassAnalysis
from majorant.models.latent_svm import LatentSVC as LatentSVC
from majorant.models.prototypes import LatentPrototypeClassifier as LatentPrototypeClassifier
from majorant.models.regression_mixture import RegressionMixture as RegressionMixture
from majorant.models.structural_svm import LatentStructuralSVM as LatentStructuralSVM
from majorant.persistence import load as load
from majorant.persistence.checkpoint import checkpoint as checkpoint
from majorant.results.likelihood_ratio import LikelihoodRatioTest as LikelihoodRatioTest
from majorant.results.likelihood_ratio import likelihood_ratio_test as likelihood_ratio_test
from majorant.results.select import select as select
from majorant.results.selection import Selection as Selection
from majorant.results.stability import Stability as Stability
from majorant.results.stability import stability as stability
from majorant.search import SearchReport as SearchReport

__version__: str
__all__: list[str]
