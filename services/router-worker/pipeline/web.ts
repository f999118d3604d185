import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { type AskedSearch, askedSearch } from '#shared/credit/web-searches.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { PluginStage, StageContext, StagedCall } from './stage.ts';
import { citationsOf } from './web/citations.ts';
import type { SearchEngine } from './web/search-engine.ts';
import { queryOf, withResults } from './web/search-message.ts';

/**
 * Lets an answer use the web. The endpoint that would be tried first decides: one that searches by itself does, and those that can't are left out; else the
 * engine of the configuration searches once, and all endpoints get what it found. So a call that falls back is searched for in one way.
 */
export const web: PluginStage = {
  request: async (staged, context) => {
    const asked = askedSearch(staged.request);
    if (asked === null) return staged;
    const engine = engineFor(asked, staged, context);
    if (engine !== null) return await searched(staged, asked, engine, context);
    context.report?.({ type: 'plugin', name: 'web', summary: 'the provider searches', data: { engine: 'native' } });
    return { ...staged, isSearchNative: true };
  },
};

/** Null: endpoints search by themselves. @throws `request.invalid` naming the plugin when none of both can be */
function engineFor(asked: AskedSearch, { request }: StagedCall, { engines, searchesNatively, candidatesOf }: StageContext): SearchEngine | null {
  const param = `plugins[${asked.at}]`;
  const { web: engine } = engines;
  if (asked.engine === 'native') {
    if (searchesNatively(request)) return null;
    throw refusal(`${param}.engine`, 'is "native", and no endpoint of the models searches by itself');
  }
  if (asked.engine !== null && engine !== null) return engine;
  if (engine === null) {
    if (searchesNatively(request)) return null;
    throw refusal(param, 'asks for a web search, for which this router has no engine, and no endpoint of the models searches by itself');
  }
  return candidatesOf(request)[0]?.searchesNatively === true ? null : engine;
}

async function searched(staged: StagedCall, asked: AskedSearch, engine: SearchEngine, { nowMs, signal, report }: StageContext): Promise<StagedCall> {
  const query = queryOf(staged);
  if (query === null) {
    report?.({ type: 'plugin', name: 'web', summary: 'nothing to search for' });
    return staged;
  }
  const results = await engine.search(query, asked.maxResults, signal);
  report?.({
    type: 'plugin',
    name: 'web',
    summary: `results=${results.length}`,
    data: { engine: engine.name, results: results.length },
    ...(engine.priceNano > 0 && { cost_usd: usdOfNano(engine.priceNano) }),
  });
  return {
    ...staged,
    request: withResults(staged.request, results, { prompt: asked.prompt, nowMs }),
    annotations: [...staged.annotations, ...citationsOf(results)],
    search: { engine: engine.name, results: results.length },
    costNano: staged.costNano + engine.priceNano,
  };
}

function refusal(param: string, problem: string): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param} ${problem}`, { details: { param } });
}
