//! tests of the API's own surface.
