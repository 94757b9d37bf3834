// Line charts by Vega-Lite, in the colours of the page. Expressions are interpreted: the page forbids eval.

const DARK = matchMedia("(prefers-color-scheme: dark)");
const MISSING =
  "Charts need Vega's scripts, which this installation lacks: build the package where vl-convert-python is installed.";

const COUNTS = "format(datum.value, datum.value < 1000 ? '~g' : '~s')";

let loading = null;

/** What draws charts, loaded with the first of them; null where the package was built without it. */
function vegaEmbed() {
  loading ??= import("./vega.js").then((module) => module.default, () => null);
  return loading;
}

/** A line over the last two minutes in a box, in the colour that the style sheet names. */
export class RateChart {
  constructor(box, colour) {
    this.box = box;
    this.colour = colour;
    this.points = [];
    this.drawing = null;
    DARK.addEventListener("change", () => this.drawing && this.draw());
  }

  /** Draw it, or draw it anew. The box has to be visible: its width is the chart's. */
  draw() {
    this.drawing = this.drawn();
    return this.drawing;
  }

  async drawn() {
    const embed = await vegaEmbed();
    if (!embed) {
      this.box.textContent = MISSING;
      this.box.classList.add("missing");
      this.box.removeAttribute("role");
      return;
    }
    this.embedded?.finalize();
    const options = { ast: true, actions: false, renderer: "canvas", defaultStyle: false, tooltip: false, logLevel: 1 };
    this.embedded = await embed(this.box, specification(this.colour), options);
    await this.show(this.points);
  }

  /** Show these points, each {ago, value}: seconds before now (0 to -120) and a rate. */
  async show(points) {
    this.points = points;
    if (!this.embedded || this.box.clientWidth === 0) return;
    const top = Math.max(1, ...points.map((point) => point.value));
    await this.embedded.view.signal("top", top).data("rates", points).runAsync();
  }

  /** Fit the box again, after it was hidden. */
  async fit() {
    if (!this.drawing) await this.draw();
    else if (this.embedded) dispatchEvent(new Event("resize"));
  }
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function specification(line) {
  const hue = colour(line);
  const axis = { title: null, labelColor: colour("--soft"), labelFontSize: 12, domain: false, ticks: false };
  return {
    width: "container",
    height: 176,
    autosize: { type: "fit", contains: "padding" },
    background: null,
    params: [{ name: "top", value: 1 }],
    data: { name: "rates", values: [] },
    mark: { type: "area", line: { color: hue, strokeWidth: 2 }, color: hue, fillOpacity: 0.14 },
    encoding: {
      x: {
        field: "ago",
        type: "quantitative",
        scale: { domain: [-120, 0], nice: false },
        axis: {
          ...axis,
          grid: false,
          values: [-120, -60, 0],
          labelPadding: 8,
          labelAlign: { expr: "datum.value === -120 ? 'left' : datum.value === -60 ? 'center' : 'right'" },
          labelExpr: "datum.value === -120 ? '2 min ago' : datum.value === -60 ? '1 min ago' : 'now'",
        },
      },
      y: {
        field: "value",
        type: "quantitative",
        scale: { domain: [0, { expr: "top" }], nice: true },
        axis: { ...axis, gridColor: colour("--line"), tickCount: 3, labelPadding: 6, labelExpr: COUNTS },
      },
    },
    config: { view: { stroke: null }, font: "ui-sans-serif, system-ui, sans-serif" },
  };
}
