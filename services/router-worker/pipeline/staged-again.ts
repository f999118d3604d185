import type { PluginEngines } from './engines.ts';
import type { PipelineReport } from './stage.ts';
import type { SearchEngine } from './web/search-engine.ts';

/** For stages that run twice for a call: its second search has the results of the first. */
export function withOneSearch(engines: PluginEngines): PluginEngines {
  const { web } = engines;
  return web === null ? engines : { moderation: engines.moderation, web: searchingOnce(web), ocr: engines.ocr };
}

function searchingOnce(engine: SearchEngine): SearchEngine {
  let results: ReturnType<SearchEngine['search']> | null = null;
  const { name, priceNano, takes } = engine;
  return { name, priceNano, takes, search: (...args) => (results ??= engine.search(...args)) };
}

/** For stages that run twice: an entry that is the same as one before is not reported again. */
export function reportOnce(report: PipelineReport): PipelineReport {
  const reported = new Set<string>();
  return (entry) => {
    const json = JSON.stringify(entry);
    if (reported.has(json)) return;
    reported.add(json);
    report(entry);
  };
}
