type Labels = Readonly<Record<string, string>>;

/** Per series; with more, a flush would block the loop noticeably. */
const MAX_BUFFERED = 512;

interface Series {
  labels: Labels;
  numbers: number[];
}

interface Level {
  below: Map<string, Level>;
  series: Series | null;
}

/**
 * Buffers metric values until a scrape. prom-client finds a series by a string of all labels, which costs more than recording; here each label is
 * one step down a tree.
 */
export class MetricBuffer {
  readonly #labelNames: readonly string[];
  readonly #flush: (labels: Labels, numbers: readonly number[]) => void;
  readonly #root: Level = { below: new Map(), series: null };
  readonly #all: Series[] = [];

  constructor(labelNames: readonly string[], flush: (labels: Labels, numbers: readonly number[]) => void) {
    this.#labelNames = labelNames;
    this.#flush = flush;
  }

  note(labels: Labels, number: number): void {
    const series = this.#seriesOf(labels);
    series.numbers.push(number);
    if (series.numbers.length >= MAX_BUFFERED) this.#empty(series);
  }

  flushAll(): void {
    for (const series of this.#all) this.#empty(series);
  }

  #empty(series: Series): void {
    const { labels, numbers } = series;
    if (numbers.length === 0) return;
    series.numbers = [];
    this.#flush(labels, numbers);
  }

  #seriesOf(labels: Labels): Series {
    let level = this.#root;
    for (const name of this.#labelNames) {
      const value = labels[name] ?? '';
      let next = level.below.get(value);
      if (next === undefined) {
        next = { below: new Map(), series: null };
        level.below.set(value, next);
      }
      level = next;
    }
    if (level.series === null) {
      level.series = { labels, numbers: [] };
      this.#all.push(level.series);
    }
    return level.series;
  }
}
