import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { within } from '../within.ts';
import { MetricBuffer } from './metric-buffer.ts';
import { type CounterKey, type GaugeKey, type HistogramKey, type Metrics, metricTable, type Sample } from './metrics.ts';

/** Shorter event loop delays are not seen. A finer resolution would keep an idle process busy. */
const LOOP_RESOLUTION_MS = 100;
/** An unreachable store must not hold up the other metrics. */
const READ_LIMIT_MS = 1_000;

export interface MetricsRegistry extends Metrics {
  readonly contentType: string;
  /** In Prometheus' text format. Concurrent calls share one result. */
  text(): Promise<string>;
}

type Read = () => readonly Sample<GaugeKey>[] | Promise<readonly Sample<GaugeKey>[]>;
type GivenLabels = Readonly<Record<string, string>>;

/** The process's metrics registry, with the default metrics (`process_*`, `nodejs_*`). Series with known label values start at 0. */
export function openMetrics(): MetricsRegistry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_RESOLUTION_MS });
  const buffers = new Map<string, MetricBuffer>();
  const gauges = new Map<string, Gauge>();
  const watched = new Map<GaugeKey, Set<Watch>>();
  for (const [key, metric] of Object.entries(metricTable)) {
    const labelNames = Object.keys(metric.labels);
    const common = { name: metric.name, help: metric.help, labelNames, registers: [registry] };
    if (metric.type === 'counter') {
      const made = new Counter(common);
      for (const labels of knownLabels(metric.labels)) made.inc(labels, 0);
      const add = (labels: GivenLabels, counts: readonly number[]) => made.inc({ ...labels }, sumOf(counts));
      buffers.set(key, new MetricBuffer(labelNames, add));
    } else if (metric.type === 'gauge') {
      const made = new Gauge(common);
      // prom-client starts a gauge at 0, but a process without partitions must not show that series.
      made.remove({});
      gauges.set(key, made);
    } else {
      const made = new Histogram({ ...common, buckets: [...metric.buckets] });
      const observe = (labels: GivenLabels, values: readonly number[]) => values.forEach((value) => void made.observe({ ...labels }, value));
      buffers.set(key, new MetricBuffer(labelNames, observe));
    }
  }

  const collect = async (): Promise<string> => {
    const all = [...watched].flatMap(([key, watches]) => [...watches].map((watch) => watch.collect(gauges.get(key))));
    await Promise.all(all);
    for (const buffer of buffers.values()) buffer.flushAll();
    return registry.metrics();
  };
  let collecting: Promise<string> | null = null;
  return {
    contentType: registry.contentType,
    text: () => {
      collecting ??= collect().finally(() => {
        collecting = null;
      });
      return collecting;
    },
    // prom-client throws for NaN, which must not fail the caller.
    add: (key: CounterKey, labels: GivenLabels, count = 1) => {
      if (Number.isFinite(count)) buffers.get(key)?.note(labels, Math.max(0, count));
    },
    move: (key: GaugeKey, labels: GivenLabels, by: number) => {
      if (Number.isFinite(by)) gauges.get(key)?.inc(labels, by);
    },
    observe: (key: HistogramKey, labels: GivenLabels, value: number) => {
      if (Number.isFinite(value)) buffers.get(key)?.note(labels, Math.max(0, value));
    },
    watch: (key: GaugeKey, read: Read) => {
      const watch = new Watch(read);
      const watches = watched.get(key) ?? new Set();
      watched.set(key, watches.add(watch));
      return () => {
        watches.delete(watch);
        watch.clear(gauges.get(key));
      };
    },
  };
}

/** A gauge that is read at each scrape. */
class Watch {
  readonly #read: Read;
  #shown: readonly Sample<GaugeKey>[] = [];

  constructor(read: Read) {
    this.#read = read;
  }

  async collect(gauge: Gauge | undefined): Promise<void> {
    const samples = (await this.#samples()).filter(({ value }) => Number.isFinite(value));
    this.clear(gauge);
    for (const { labels, value } of samples) gauge?.set(labels, value);
    this.#shown = samples;
  }

  /** A stale value would look current. */
  clear(gauge: Gauge | undefined): void {
    for (const { labels } of this.#shown) gauge?.remove(labels);
    this.#shown = [];
  }

  async #samples(): Promise<readonly Sample<GaugeKey>[]> {
    try {
      return await within(READ_LIMIT_MS, (async () => this.#read())(), () => []);
    } catch {
      // The failed series is missing.
      return [];
    }
  }
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** None when a label's values are not known beforehand. */
function knownLabels(labels: Record<string, readonly string[] | null>): GivenLabels[] {
  let combinations: GivenLabels[] = [{}];
  for (const [label, values] of Object.entries(labels))
    combinations = combinations.flatMap((one) => (values ?? []).map((value) => ({ ...one, [label]: value })));
  return combinations;
}
