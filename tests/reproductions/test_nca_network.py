"""The posed faces of NCA's figure 3."""

import numpy as np

from reproductions.nca.network import FACE, NOISE, Poses, posed


def test_a_face_is_turned_about_its_middle_and_scaled():
    face = np.random.default_rng(0).random(FACE)
    upright = posed(face, 0, FACE[0]).reshape(35, 35)
    # half a pixel, by interpolation
    np.testing.assert_allclose(upright[4:31, 7:28], (face[:-1] + face[1:])[:, 1:-1] / 2)
    # rounding decides on the edge
    turned, inner = (
        posed(face, 90, FACE[0]).reshape(35, 35),
        slice(5, 30),
    )
    np.testing.assert_allclose(
        turned[inner, inner], np.rot90(upright, -1)[inner, inner], atol=1e-12
    )
    rows = np.flatnonzero(posed(np.ones(FACE), 0, 20).reshape(35, 35)[17] > 0.5)
    assert abs(len(rows) - FACE[1] * 20 / FACE[0]) < 2


def test_pairs_share_a_pose_but_for_noise_of_which_the_weight_tells():
    faces, who = np.ones((6, *FACE)), np.array([0, 0, 1, 1, 2, 2])
    drawn = Poses.drawn(faces, who, 200, np.random.default_rng(0))
    assert drawn.X.shape == (400, 35 * 35)
    first, second = drawn.poses.reshape(-1, 2, 2).transpose(1, 0, 2)
    noise = (second - first) / NOISE
    np.testing.assert_allclose(noise.std(axis=0), 1, atol=0.15)
    np.testing.assert_allclose(drawn.weights, np.exp(-np.sum(noise**2, axis=1) / 2))
