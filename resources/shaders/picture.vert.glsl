// One triangle strip: the picture's rectangle, target = x0, y0, x1, y1 in clip coordinates.
uniform vec4 target;
attribute vec2 corner;  // 0 or 1; y = 0 is the picture's first row
varying vec2 place;

void main() {
    place = corner;
    gl_Position = vec4(mix(target.x, target.z, corner.x), mix(target.y, target.w, corner.y), 0.0, 1.0);
}
