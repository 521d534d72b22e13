// Shapes that rays can hit: ellipsoids, boxes, lathed profiles, wires, and a room seen from inside.
//
// Every shape tells how far along a ray its first surface lies, and the normal and the shape's own
// coordinates at a point on it. Directions are unit vectors.
#pragma once

#include <utility>
#include <vector>

#include "vectors.h"

struct Ray {
    Vec origin, direction;
};

struct Surface {
    Vec normal;  // unit; its sign does not matter
    Vec local;   // the shape's own coordinates, which paint is given in
};

struct Bounds {
    Vec low{kFar, kFar, kFar}, high{-kFar, -kFar, -kFar};

    void include(Vec point, double reach = 0) {
        low = lowest(low, point - Vec{reach, reach, reach});
        high = highest(high, point + Vec{reach, reach, reach});
    }
    void include(const Bounds& other) {
        include(other.low);
        include(other.high);
    }
    bool hit(const Ray& ray, double before) const {
        const Vec a = (low - ray.origin) / ray.direction, b = (high - ray.origin) / ray.direction;
        const Vec first = lowest(a, b), last = highest(a, b);
        const double entry = std::max({first.x, first.y, first.z, 0.0});
        return entry <= std::min({last.x, last.y, last.z, before});
    }
};

class Shape {
  public:
    virtual ~Shape() = default;
    virtual double distance(const Ray& ray) const = 0;  // kFar when it misses
    virtual Surface surface(Vec point) const = 0;
    virtual Bounds bounds() const = 0;
};

// The roots of a t^2 + 2 half_b t + c = 0, the smaller first; kFar where there are none.
inline std::pair<double, double> roots(double a, double half_b, double c) {
    const double discriminant = half_b * half_b - a * c;
    if (discriminant <= 0 || std::abs(a) < 1e-14) return {kFar, kFar};
    const double root = std::sqrt(discriminant);
    const double t0 = (-half_b - root) / a, t1 = (-half_b + root) / a;
    return {std::min(t0, t1), std::max(t0, t1)};
}

// Turned about the vertical by `angle`, then tilted about its own second axis, both in degrees.
class Ellipsoid : public Shape {
  public:
    Ellipsoid(Vec center, Vec radii, double angle = 0, double tilt = 0)
        : center_(center), radii_(radii), angle_(angle), tilt_(tilt) {}

    double distance(const Ray& ray) const override {
        const Vec o = inward(ray.origin - center_) / radii_, d = inward(ray.direction) / radii_;
        const auto [first, second] = roots(dot(d, d), dot(o, d), dot(o, o) - 1);
        return first > kNear ? first : second > kNear ? second : kFar;
    }
    Surface surface(Vec point) const override {
        const Vec local = inward(point - center_) / radii_;
        return {unit(outward(local / radii_)), local};
    }
    Bounds bounds() const override {
        Bounds box;
        box.include(center_, std::max({radii_.x, radii_.y, radii_.z}));
        return box;
    }

  private:
    Vec inward(Vec a) const {
        a = turned(a, -angle_);
        const double c = std::cos(tilt_ * kPi / 180), s = std::sin(tilt_ * kPi / 180);
        return {c * a.x - s * a.z, a.y, s * a.x + c * a.z};
    }
    Vec outward(Vec a) const {
        const double c = std::cos(tilt_ * kPi / 180), s = std::sin(tilt_ * kPi / 180);
        return turned({c * a.x + s * a.z, a.y, -s * a.x + c * a.z}, angle_);
    }
    Vec center_, radii_;
    double angle_, tilt_;
};

// Turned about the vertical; its own coordinates run from -half to +half.
class Box : public Shape {
  public:
    Box(Vec center, Vec half, double angle = 0) : center_(center), half_(half), angle_(angle) {}

    double distance(const Ray& ray) const override {
        const Vec o = turned(ray.origin - center_, -angle_), d = turned(ray.direction, -angle_);
        const Vec a = (-half_ - o) / d, b = (half_ - o) / d;
        const Vec first = lowest(a, b), last = highest(a, b);
        const double entry = std::max({first.x, first.y, first.z});
        const double leave = std::min({last.x, last.y, last.z});
        if (leave < entry) return kFar;
        return entry > kNear ? entry : leave > kNear ? leave : kFar;
    }
    Surface surface(Vec point) const override {
        const Vec local = turned(point - center_, -angle_), share = local / half_;
        const double x = std::abs(share.x), y = std::abs(share.y), z = std::abs(share.z);
        Vec normal{0, 0, 1};
        if (x >= y && x >= z)
            normal = {1, 0, 0};
        else if (y >= z)
            normal = {0, 1, 0};
        return {turned(normal, angle_), local};
    }
    Bounds bounds() const override {
        Bounds box;
        for (int corner = 0; corner < 8; ++corner) {
            const Vec sign{corner & 1 ? 1.0 : -1.0, corner & 2 ? 1.0 : -1.0, corner & 4 ? 1.0 : -1.0};
            box.include(center_ + turned(sign * half_, angle_));
        }
        return box;
    }

  private:
    Vec center_, half_;
    double angle_;
};

// The inside of a box along the axes: every ray that starts in it ends on it.
class Room : public Shape {
  public:
    Room(Vec low, Vec high) : low_(low), high_(high) {}

    double distance(const Ray& ray) const override {
        const Vec a = (low_ - ray.origin) / ray.direction, b = (high_ - ray.origin) / ray.direction;
        const Vec last = highest(a, b);
        return std::min({last.x, last.y, last.z});
    }
    Surface surface(Vec p) const override {
        const double x = std::min(std::abs(p.x - low_.x), std::abs(p.x - high_.x));
        const double y = std::min(std::abs(p.y - low_.y), std::abs(p.y - high_.y));
        const double z = std::min(std::abs(p.z - low_.z), std::abs(p.z - high_.z));
        if (x <= y && x <= z) return {{1, 0, 0}, p};
        if (y <= z) return {{0, 1, 0}, p};
        return {{0, 0, 1}, p};
    }
    Bounds bounds() const override {
        Bounds box;
        box.include(low_, 1e-3);
        box.include(high_, 1e-3);
        return box;
    }

  private:
    Vec low_, high_;
};

// A profile of (radius, height) points turned about a vertical axis; `smooth` blends the normals
// along it. Own coordinates: angle / pi, height, position along the profile in pieces.
class Lathe : public Shape {
  public:
    Lathe(Vec center, std::vector<std::pair<double, double>> profile, bool smooth = true)
        : center_(center), profile_(std::move(profile)), smooth_(smooth) {}

    double distance(const Ray& ray) const override {
        const Vec o = ray.origin - center_, d = ray.direction;
        double best = kFar;
        for (size_t i = 0; i + 1 < profile_.size(); ++i) {
            const auto [r0, z0] = profile_[i];
            const auto [r1, z1] = profile_[i + 1];
            const double low = std::min(z0, z1), high = std::max(z0, z1);
            if (high - low < 1e-9) {
                const double t = (z0 - o.z) / d.z;
                const double r = std::hypot(o.x + t * d.x, o.y + t * d.y);
                if (t > kNear && r >= std::min(r0, r1) && r <= std::max(r0, r1)) best = std::min(best, t);
                continue;
            }
            const double slope = (r1 - r0) / (z1 - z0);
            const double radius = r0 + slope * (o.z - z0), growth = slope * d.z;
            const auto [first, second] =
                roots(d.x * d.x + d.y * d.y - growth * growth, o.x * d.x + o.y * d.y - radius * growth,
                      o.x * o.x + o.y * o.y - radius * radius);
            for (const double t : {first, second}) {
                const double z = o.z + t * d.z;
                if (t > kNear && z >= low && z <= high) best = std::min(best, t);
            }
        }
        return best;
    }
    Surface surface(Vec point) const override {
        const Vec p = point - center_;
        const double r = std::hypot(p.x, p.y);
        double nearest = kFar, share = 0;
        size_t piece = 0;
        for (size_t i = 0; i + 1 < profile_.size(); ++i) {
            const auto [r0, z0] = profile_[i];
            const auto [r1, z1] = profile_[i + 1];
            const double dr = r1 - r0, dz = z1 - z0;
            const double along =
                std::clamp(((r - r0) * dr + (p.z - z0) * dz) / (dr * dr + dz * dz), 0.0, 1.0);
            const double gap = std::hypot(r - r0 - along * dr, p.z - z0 - along * dz);
            if (gap < nearest) nearest = gap, share = along, piece = i;
        }
        Vec flat = piece_normal(piece);
        if (smooth_) {
            const Vec before = piece > 0 ? unit(piece_normal(piece - 1) + flat) : flat;
            const Vec after = piece + 2 < profile_.size() ? unit(flat + piece_normal(piece + 1)) : flat;
            flat = mix(before, after, share);
        }
        const double scale = flat.x / std::max(r, 1e-9);
        return {unit({scale * p.x, scale * p.y, flat.z}),
                {std::atan2(p.y, p.x) / kPi, p.z, static_cast<double>(piece) + share}};
    }
    Bounds bounds() const override {
        Bounds box;
        for (const auto& [r, z] : profile_) {
            box.include(center_ + Vec{r, r, z}, 1e-3);
            box.include(center_ + Vec{-r, -r, z}, 1e-3);
        }
        return box;
    }

  private:
    Vec piece_normal(size_t i) const {  // in the (radius, height) plane
        const double dr = profile_[i + 1].first - profile_[i].first;
        const double dz = profile_[i + 1].second - profile_[i].second;
        return unit({dz, 0, -dr});
    }
    Vec center_;
    std::vector<std::pair<double, double>> profile_;
    bool smooth_;
};

// A round wire between two points, with round ends. Own coordinates: 0..1 from start to end.
class Wire : public Shape {
  public:
    Wire(Vec start, Vec end, double radius) : start_(start), axis_(end - start), radius_(radius) {}

    double distance(const Ray& ray) const override {
        const Vec o = ray.origin - start_, d = ray.direction;
        const double length2 = dot(axis_, axis_), axis_o = dot(o, axis_), axis_d = dot(d, axis_);
        const double body = roots(length2 - axis_d * axis_d, length2 * dot(o, d) - axis_o * axis_d,
                                  length2 * (dot(o, o) - radius_ * radius_) - axis_o * axis_o)
                                .first;
        const double along = axis_o + body * axis_d;
        if (body > kNear && along > 0 && along < length2) return body;
        double best = kFar;
        for (const Vec tip : {o, o - axis_}) {
            const double cap = roots(1, dot(tip, d), dot(tip, tip) - radius_ * radius_).first;
            if (cap > kNear) best = std::min(best, cap);
        }
        return best;
    }
    Surface surface(Vec point) const override {
        const double share = std::clamp(dot(point - start_, axis_) / dot(axis_, axis_), 0.0, 1.0);
        return {unit(point - start_ - share * axis_), {share, 0, 0}};
    }
    Bounds bounds() const override {
        Bounds box;
        box.include(start_, radius_);
        box.include(start_ + axis_, radius_);
        return box;
    }

  private:
    Vec start_, axis_;
    double radius_;
};
