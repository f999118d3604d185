import { describe, expect, it } from 'vitest';
import { metricTable } from './metrics.ts';
import { openMetrics } from './open-metrics.ts';
import { seriesOf } from './series-of.ts';

describe('the metrics of a process', () => {
  it('leave out what can not be read, and show the rest', async () => {
    const metrics = openMetrics();
    let isAway = false;
    metrics.watch('partitionsOwned', () => {
      if (isAway) throw new Error('away');
      return [{ labels: {}, value: 64 }];
    });
    metrics.watch('effectsOpen', async () => [{ labels: {}, value: 3 }]);

    expect(seriesOf(await metrics.text(), metricTable.partitionsOwned.name)).toEqual(['64']);
    isAway = true;
    const text = await metrics.text();
    expect(seriesOf(text, metricTable.partitionsOwned.name)).toEqual([]);
    expect(seriesOf(text, metricTable.effectsOpen.name)).toEqual(['3']);
  });

  it('do not wait for one that is never read', async () => {
    const metrics = openMetrics();
    metrics.watch('queueDepth', () => new Promise(() => {}));
    metrics.watch('queueDepth', () => [{ labels: { kind: 'tool' }, value: 5 }]);

    expect(seriesOf(await metrics.text(), metricTable.queueDepth.name)).toEqual(['{kind="tool"} 5']);
  });

  it('are read once for concurrent requests', async () => {
    const metrics = openMetrics();
    let asked = 0;
    const unwatch = metrics.watch('partitionsOwned', () => {
      asked += 1;
      return [{ labels: {}, value: asked }];
    });

    const [one, other] = await Promise.all([metrics.text(), metrics.text()]);
    expect([asked, one === other]).toEqual([1, true]);
    unwatch();
    await metrics.text();
    expect(asked).toBe(1);
  });

  it('are added up by their labels, up and down where they may', async () => {
    const metrics = openMetrics();
    metrics.add('tokens', { model: 'm', provider: 'p', kind: 'prompt' }, 12);
    metrics.add('tokens', { model: 'm', provider: 'p', kind: 'prompt' }, 30);
    metrics.add('fences', {});
    metrics.move('streamsOpen', { kind: 'router_stream' }, 1);
    metrics.move('streamsOpen', { kind: 'router_stream' }, -1);
    metrics.observe('commitCommands', {}, 3);
    const text = await metrics.text();

    expect(seriesOf(text, metricTable.tokens.name)).toEqual(['{model="m",provider="p",kind="prompt"} 42']);
    expect(seriesOf(text, metricTable.fences.name)).toEqual(['1']);
    expect(seriesOf(text, metricTable.streamsOpen.name)).toEqual(['{kind="router_stream"} 0']);
    expect(seriesOf(text, `${metricTable.commitCommands.name}_sum`)).toEqual(['3']);
  });

  it('ignore what is not a number, without an error for the caller', async () => {
    const metrics = openMetrics();
    for (const count of [Number.NaN, Number.POSITIVE_INFINITY]) {
      metrics.add('tokens', { model: 'm', provider: 'p', kind: 'prompt' }, count);
      metrics.observe('commitCommands', {}, count);
      metrics.move('streamsOpen', { kind: 'router_stream' }, count);
    }
    metrics.watch('effectsOpen', () => [{ labels: {}, value: Number.NaN }]);
    metrics.watch('partitionsOwned', () => [{ labels: {}, value: 64 }]);
    const text = await metrics.text();

    expect(seriesOf(text, metricTable.tokens.name)).toEqual([]);
    expect(seriesOf(text, `${metricTable.commitCommands.name}_count`)).toEqual(['0']);
    expect(seriesOf(text, metricTable.partitionsOwned.name)).toEqual(['64']);
  });

  it('exist from the start where all their labels are known, so that the first one is an increase', async () => {
    const text = await openMetrics().text();

    expect(seriesOf(text, metricTable.deadLetters.name)).toEqual([
      '{source="command"} 0',
      '{source="delivery"} 0',
      '{source="event"} 0',
      '{source="tool"} 0',
      '{source="call"} 0',
      '{source="usage"} 0',
    ]);
    expect(seriesOf(text, metricTable.runs.name)).toEqual([]);
    expect(seriesOf(text, metricTable.partitionsOwned.name)).toEqual([]);
  });

  it('are beside those of the process itself, in a separate registry', async () => {
    const [one, other] = [openMetrics(), openMetrics()];
    one.add('fences', {});

    expect(await one.text()).toContain('nodejs_eventloop_lag_p99_seconds ');
    expect(seriesOf(await other.text(), metricTable.fences.name)).toEqual(['0']);
  });

  it('are named by what they count and in which unit', () => {
    for (const { name, type } of Object.values(metricTable)) {
      expect(name).toMatch(/^switchyard_[a-z_]+$/);
      if (type === 'counter') expect(name).toMatch(/_total$/);
      if (type === 'histogram') expect(name).toMatch(/_(seconds|commands)$/);
    }
    expect(new Set(Object.values(metricTable).map(({ name }) => name)).size).toBe(Object.keys(metricTable).length);
  });
});
