"""Which tests wait for `make test-all`; every other test is one of `make test`.

Tests go by file and function, wherever the file lies. What is not named here is quick: a new test needs no entry until
it takes a second or more.
"""

from __future__ import annotations

NEEDS = {
    "test_browser.py": "browser",
    "test_cluster.py": "cluster",
    "test_docs.py::test_every_block_runs": "site",
    "test_docs.py::test_the_site_builds_without_a_warning": "site",
}
"""What has to be installed or built first, by file or by file and function."""

SAMPLED = {
    "test_after_the_fit.py::test_nothing_that_is_set_after_a_fit_changes_what_it_says": 3,
    "test_bad_input.py::test_degenerate_tables_give_numbers": 5,
    "test_bad_input.py::test_equal_weights_change_no_label": 5,
    "test_bad_input.py::test_single_precision_and_sparse_rows_are_near": 7,
    "test_bad_input.py::test_the_form_of_the_numbers_does_not_matter": 7,
    "test_bad_input.py::test_units_do_not_matter": 5,
    "test_bad_input.py::test_weights_of_one_are_no_weights": 7,
    "test_bad_input.py::test_wrong_rows_are_refused_by_predict": 11,
    "test_certificate.py::test_a_fit_that_had_not_ended_is_not_certified": 3,
    "test_discriminative_clustering.py::test_no_clustering_passes_the_bound": 3,
    "test_estimator_checks.py::test_estimator_contract": 7,
    "test_gauss_kernel.py::test_wide_rows": 3,
    "test_gaussian_rules.py::test_a_far_group_changes_no_verdict": 5,
    "test_hidden_markov.py::test_covariance_types_in_any_units": 3,
    "test_hidden_markov.py::test_references_are_reached": 5,
    "test_latent_class_analysis.py::test_the_reference_log_likelihood_is_reached": 3,
    "test_loop.py::test_bounds_never_rise_and_stay_within_their_budget": 3,
    "test_path.py::test_few_rows_with_all_views_do_not_end_in_no_component": 3,
    "test_pseudo_likelihood.py::test_the_gradient_is_that_of_differences": 3,
    "test_regression_inference.py::test_resampling_agrees_with_the_information": 3,
    "test_regression_mixture.py::test_every_seed_reaches_the_best_optimum": 5,
    "test_regression_references.py::test_no_worse_than_the_best_of_fifty_starts_of_flexmix": 5,
    "test_units_streamed.py::test_the_answer_is_that_of_memory": 3,
}
"""Many cases alike, seconds altogether: one of so many is quick. That number has no divisor in common with how many
values each parameter of the cases has, so that each estimator and each kind of input is met."""

SLOW = {
    "test_after_the_fit.py::test_the_next_fit_uses_what_was_set",
    "test_architecture.py::test_nothing_is_written_twice",
    "test_architecture.py::test_optional_libraries_are_optional_and_never_imported_first",
    "test_bag_of_words.py::test_coherence_makes_maps_smoother_than_tightest_bounds",
    "test_bag_of_words.py::test_the_annealed_start_needs_no_luck",
    "test_cases.py::test_a_peers_best_of_nine_clusters_is_beaten_by_any_seed",
    "test_cases.py::test_reruns_change_no_bit",
    "test_cases.py::test_thread_settings_of_the_process_change_no_bit",
    "test_cases.py::test_threads_change_no_bit",
    "test_certificate.py::test_y_of_a_certificate_is_checked",
    "test_checkpoint.py::test_another_model",
    "test_classifier.py::test_sparse_text_like_rows",
    "test_completion.py::test_bash_completes",
    "test_contrastive_fits.py::test_a_target_is_learnt",
    "test_contrastive_fits.py::test_labels_are_learnt",
    "test_contrastive_fits.py::test_rows_that_lack_views_take_part",
    "test_contrastive_fits.py::test_starts_that_end_elsewhere_are_told_of",
    "test_contrastive_fits.py::test_the_penalty_is_chosen_by_held_out_pseudo_likelihood",
    "test_contrastive_fits.py::test_weights_are_repeats_and_threads_change_nothing",
    "test_discriminative_clustering.py::test_single_rows_are_moved_while_that_helps",
    "test_experiments.py::test_discriminative_latent_class",
    "test_experiments.py::test_its_problems",
    "test_experiments.py::test_latent_prototypes",
    "test_experiments.py::test_multiview_contrastive",
    "test_experiments.py::test_multiview_digits",
    "test_experiments.py::test_spectral_experts",
    "test_fitting.py::test_demo_keeps_what_is_there",
    "test_formulas.py::test_terms_that_share_a_column_are_not_told_as_straight_lines",
    "test_fuzzed_files.py::test_damaged_files_of_every_model",
    "test_gaussian_certify.py::test_no_mixture_of_any_size_is_better",
    "test_gaussian_missing_estimator.py::test_every_seed_finds_the_same_maximum",
    "test_gaussian_rules.py::test_the_distance_of_a_group_changes_nothing_else",
    "test_generated_tables.py::test_generated_tables_give_numbers_or_a_clear_error",
    "test_harmonium.py::test_a_regression_finds_its_target",
    "test_harmonium.py::test_rows_that_lack_a_view_take_part_in_the_fit",
    "test_harmonium.py::test_views_wider_than_rows_all_zero_rows_and_many_components",
    "test_harmonium.py::test_weights_are_repeats_and_the_order_of_rows_does_not_matter",
    "test_hidden_markov.py::test_an_impossible_solution_is_an_error",
    "test_kmeans.py::test_a_quick_bound_is_none_where_none_was_found_as_the_page_says",
    "test_kmeans_streams.py::test_fits_at_the_same_time_do_not_share_weights",
    "test_kmeans_streams.py::test_threads_change_no_bit_of_a_streamed_fit",
    "test_latent_class_analysis.py::test_a_file_has_the_levels_of_all_its_rows",
    "test_latent_class_steps.py::test_slopes_and_means_of_many_samples_are_the_true_ones_and_intervals_cover_them",
    "test_logistic.py::test_the_penalty_is_the_one_with_the_least_loss_of_folds_left_out",
    "test_loss_weight.py::test_the_weight_of_the_loss_is_the_one_that_is_worth_it_on_held_out_rows",
    "test_mistakes.py::test_mistake_in_a_real_process",
    "test_mistakes.py::test_output_without_room",
    "test_path.py::test_components_that_came_to_nothing_on_the_path_return_where_they_are_needed",
    "test_path.py::test_losses_of_folds_are_averaged_and_each_row_is_held_out_once",
    "test_regression_certify.py::test_no_search_finds_a_better_mixture",
    "test_regression_mixture.py::test_any_small_table_gives_numbers",
    "test_regression_mixture.py::test_moments_lead_to_the_truth_where_random_starts_do_not",
    "test_runs.py::test_a_closed_pipe_is_no_fault",
    "test_runs.py::test_demo_writes_a_run",
    "test_runs.py::test_predict_repeats_the_assignments",
    "test_runs.py::test_report_is_written_again",
    "test_runs.py::test_stopping_leaves_nothing",
    "test_runs.py::test_terminals_without_blocks_get_plain_characters",
    "test_select_by.py::test_few_rows_and_other_forms",
    "test_select_by.py::test_held_out_bits_become_likelier",
    "test_streams.py::test_of_dask",
    "test_streams.py::test_other_settings",
    "test_structural_svm.py::test_as_an_estimator",
    "test_structural_svm.py::test_first_latent_values",
    "test_structure.py::test_the_gradient_is_that_of_differences",
    "test_structured_views.py::test_samples_look_like_rows",
    "test_units_streamed.py::test_equal_chunks_give_equal_answers_wherever_they_are",
    "test_views.py::test_a_chain",
    "test_views.py::test_a_penalty_that_is_chosen_by_a_view_is_told_with_the_share_of_its_weights",
    "test_views.py::test_a_target_of_text_is_classified_and_one_of_numbers_is_predicted",
    "test_views.py::test_contrastive_divergence_is_a_setting",
}
"""A second of CPU or more a case."""


def tier(file: str, function: str, number: int) -> str | None:
    """The marker of the case of that number of a function: None where it is quick."""
    name = f"{file}::{function}"
    needed = NEEDS.get(file) or NEEDS.get(name)
    return needed or ("slow" if name in SLOW or number % SAMPLED.get(name, 1) else None)
