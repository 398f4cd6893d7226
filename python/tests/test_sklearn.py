"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from genus import CategoryDiscovery

# scikit-learn spares its own semi-supervised classifiers this by name: the check takes -1 for a class.
SPARED = {"check_classifiers_classes": "-1 marks what is unlabelled, as in SelfTrainingClassifier and LabelPropagation"}


@parametrize_with_checks([CategoryDiscovery()], expected_failed_checks=lambda _: SPARED)
@pytest.mark.filterwarnings("ignore:every row of y has a label")
def test_scikit_learn(estimator, check):
    check(estimator)
