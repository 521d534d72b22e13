// The ray tracer: soft shadow of one lamp, light of the room with contact shade, two mirror bounces.
//
//   trace WIDTH HEIGHT FOCAL SAMPLES_PER_SIDE SEED M00 .. M23 > picture-then-depth
//
// M is the camera-to-world pose, three rows of four, OpenCV axes. Writes the picture as 8-bit RGB, row by
// row, then the distance along each pixel centre's ray as float32. Light is linear until the very end; a
// pixel is the mean of stratified samples of its area and of the lamp.
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "world.h"

namespace {

// Reflectance at grazing angles: 1 for a perfect glaze, less for one that is a little rough.
constexpr double kGrazing = 0.4;

struct Hit {
    double distance = kFar;
    const Thing* thing = nullptr;
};

Hit nearest(const World& world, const Ray& ray, double before = kFar) {
    Hit hit{before, nullptr};
    for (const Group& group : world.groups) {
        if (!group.bounds.hit(ray, hit.distance)) continue;
        for (const Thing& thing : group.things) {
            if (!thing.bounds.hit(ray, hit.distance)) continue;
            const double t = thing.shape->distance(ray);
            if (t < hit.distance) hit = {t, &thing};
        }
    }
    return hit;
}

// The lamp is sampled at (a, b) of its disc, both in 0..1.
struct LampSample {
    double a, b;
};

Vec on_lamp(const World& world, LampSample sample) {
    const Vec axis = unit(world.lamp_center), side = unit(cross(axis, {0, 0, 1}));
    const double radius = world.lamp_radius * std::sqrt(sample.a), angle = 2 * kPi * sample.b;
    return world.lamp_center + radius * std::cos(angle) * side + radius * std::sin(angle) * cross(axis, side);
}

Vec room_light(const World& world, Vec point, Vec normal) {
    const Vec light = mix(world.ground, world.sky, 0.5 + 0.5 * normal.z);
    double open = 1;
    for (const Ball& ball : world.balls) {
        const Vec offset = ball.center - point;
        const double gap = std::max(length(offset), 0.6 * ball.radius);
        const double facing = std::max(dot(offset, normal) / gap, 0.0);
        open *= 1 - 0.85 * std::min(facing * (ball.radius / gap) * (ball.radius / gap), 1.0);
    }
    return open * light;
}

Vec seen(const World& world, const Ray& ray, LampSample sample, int bounces) {
    const Hit hit = nearest(world, ray);
    if (!hit.thing) return {};
    const Vec point = ray.origin + hit.distance * ray.direction;
    const Surface surface = hit.thing->shape->surface(point);
    const Vec normal = dot(surface.normal, ray.direction) > 0 ? -surface.normal : surface.normal;
    const Material& material = hit.thing->material;
    const Vec albedo = material.paint(surface.local, normal), start = point + 4 * kNear * normal;

    const Vec target = on_lamp(world, sample), to_lamp = unit(target - start);
    const double reach = length(target - start), facing = dot(to_lamp, normal);
    const bool lit = facing > 0 && !nearest(world, {start, to_lamp}, reach - 1e-3).thing;
    Vec color = albedo * room_light(world, point, normal);
    if (lit) {
        const double shine = std::max(dot(unit(to_lamp - ray.direction), normal), 0.0);
        color = color + facing * albedo * world.lamp_color +
                material.gloss * std::pow(shine, material.shininess) * world.lamp_color;
    }
    if (material.mirror <= 0 || bounces == 0) return color;
    const double cosine = -dot(normal, ray.direction);
    const double share =
        material.mirror + std::max(kGrazing - material.mirror, 0.0) * std::pow(1 - cosine, 5);
    const Ray bounced{start, ray.direction + 2 * cosine * normal};
    const Vec reflected = seen(world, bounced, sample, bounces - 1);
    return mix(color, material.metal ? albedo * reflected : reflected, share);
}

// A linear level as 0..255: a soft shoulder, then the sRGB curve.
unsigned char to_byte(double linear) {
    const double shoulder = 0.8, over = linear - shoulder;
    if (over > 0) linear = shoulder + over / (1 + over / (1 - shoulder));
    const double bent = linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
    return static_cast<unsigned char>(std::lround(255 * std::clamp(bent, 0.0, 1.0)));
}

class Camera {
  public:
    Camera(int width, int height, double focal, char** pose)
        : center_x_(width / 2.0), center_y_(height / 2.0), focal_(focal) {
        for (int i = 0; i < 12; ++i) pose_[i] = std::atof(pose[i]);
    }
    Ray ray(double x, double y) const {
        const Vec d = unit({(x - center_x_) / focal_, (y - center_y_) / focal_, 1});
        return {{pose_[3], pose_[7], pose_[11]},
                {pose_[0] * d.x + pose_[1] * d.y + pose_[2] * d.z,
                 pose_[4] * d.x + pose_[5] * d.y + pose_[6] * d.z,
                 pose_[8] * d.x + pose_[9] * d.y + pose_[10] * d.z}};
    }

  private:
    double center_x_, center_y_, focal_, pose_[12];
};

Vec pixel(const World& world, const Camera& camera, int column, int row, int side, Random& random) {
    std::vector<int> lamp_cells(static_cast<size_t>(side) * side);
    std::iota(lamp_cells.begin(), lamp_cells.end(), 0);
    for (size_t i = lamp_cells.size() - 1; i > 0; --i)
        std::swap(lamp_cells[i], lamp_cells[static_cast<size_t>(random.next() * static_cast<double>(i + 1))]);
    Vec total;
    for (int i = 0; i < side * side; ++i) {
        const int cell = lamp_cells[static_cast<size_t>(i)];
        const double x = column + (i % side + random.next()) / side,
                     y = row + (i / side + random.next()) / side;
        const LampSample sample{(cell % side + random.next()) / side, (cell / side + random.next()) / side};
        total = total + seen(world, camera.ray(x, y), sample, 2);
    }
    return (1.0 / (side * side)) * total;
}

}  // namespace

int main(int count, char** words) {
    if (count != 18) {
        std::fputs("expected: WIDTH HEIGHT FOCAL SAMPLES_PER_SIDE SEED and 12 numbers of the pose\n", stderr);
        return 2;
    }
    const int width = std::atoi(words[1]), height = std::atoi(words[2]), side = std::atoi(words[4]);
    const Camera camera(width, height, std::atof(words[3]), words + 6);
    Random random(static_cast<uint64_t>(std::atoll(words[5])));
    const World world = still_life();
    std::vector<unsigned char> picture;
    std::vector<float> depth;
    for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column) {
            const Vec color = pixel(world, camera, column, row, side, random);
            for (const double level : {color.x, color.y, color.z}) picture.push_back(to_byte(level));
            depth.push_back(static_cast<float>(nearest(world, camera.ray(column + 0.5, row + 0.5)).distance));
        }
    std::fwrite(picture.data(), 1, picture.size(), stdout);
    std::fwrite(depth.data(), sizeof(float), depth.size(), stdout);
    return std::fflush(stdout) == 0 ? 0 : 1;
}
