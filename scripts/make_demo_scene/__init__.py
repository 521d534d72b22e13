"""A small ray tracer and the still life of the demo scene: `python -m scripts.make_demo_scene`.

Makes the photos, cameras and sparse points of `resources/demo` from mathematics alone; the tracer
is C++, in `tracer/`. Nothing of the program is used, so that the demo's truth does not depend on
what it measures.
"""
