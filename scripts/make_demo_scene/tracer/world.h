// What the tracer needs to know of a scene: things in groups, a lamp, the light of the room.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "shapes.h"

struct Material {
    std::function<Vec(Vec local, Vec normal)> paint;  // linear albedo; the normal faces the viewer
    double gloss = 0;                                 // strength of the lamp's highlight
    double shininess = 40;
    double mirror = 0;   // reflectance seen straight on; it rises at grazing angles (Schlick)
    bool metal = false;  // reflections take the colour of the paint
};

struct Thing {
    std::unique_ptr<Shape> shape;
    Material material;
    Bounds bounds;
};

struct Group {  // skipped by rays that miss its box
    std::vector<Thing> things;
    Bounds bounds;

    void add(std::unique_ptr<Shape> shape, const Material& material) {
        const Bounds box = shape->bounds();
        bounds.include(box);
        things.push_back({std::move(shape), material, box});
    }
};

struct Ball {  // stands for an object where the light of the room is blocked near it
    Vec center;
    double radius;
};

struct World {
    std::vector<Group> groups;
    std::vector<Ball> balls;
    Vec lamp_center, lamp_color;  // a round lamp facing the origin
    double lamp_radius = 0;
    Vec sky, ground;
};

World still_life();
