import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import * as echarts from "echarts";

export interface PlotInput {
  readonly title: string;
  readonly subtitle: string;
  readonly categories: readonly string[];
  readonly series: readonly { readonly name: string; readonly values: readonly number[] }[];
  readonly unit: string;
}

/** Writes a bar chart as SVG: one group per category, one bar per series. */
export function writePlot(path: string, input: PlotInput): void {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 960, height: 480 });
  chart.setOption({
    backgroundColor: "#ffffff",
    animation: false,
    title: { text: input.title, subtext: input.subtitle, left: 16, top: 10 },
    legend: { top: 16, right: 16 },
    grid: { left: 64, right: 24, top: 88, bottom: 40 },
    xAxis: { type: "category", data: [...input.categories] },
    yAxis: { type: "value", name: input.unit },
    series: input.series.map(({ name, values }) => ({
      name,
      type: "bar",
      data: values.map((value) => Number(value.toFixed(2))),
      label: { show: true, position: "top", fontSize: 9 },
    })),
  });
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, chart.renderToSVGString());
  chart.dispose();
}
