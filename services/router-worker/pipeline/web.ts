import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { limitBeyond } from '#shared/contracts/router/search-limits.ts';
import { usdOfNano } from '#shared/credit/nano-usd.ts';
import { type AskedSearch, askedSearch } from '#shared/credit/web-searches.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { randomHex } from '#shared/ids.ts';
import type { PluginStage, StageContext, StagedCall } from './stage.ts';
import { citationsOf } from './web/citations.ts';
import type { SearchEngine } from './web/search-engine.ts';
import { queryOf, withResults } from './web/search-message.ts';

const BOUNDARY_BYTES = 8;

/**
 * Lets an answer use the web. The endpoint that would be tried first decides: one that searches by itself does, and those that can't are left out; else the
 * engine of the configuration searches once, and all endpoints get what it found, also those that the stages run again for: it is paid for. So a call that
 * falls back is searched for in one way.
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
function engineFor(asked: AskedSearch, { request }: StagedCall, { engines, before, searchesNatively, candidatesOf }: StageContext): SearchEngine | null {
  const param = `plugins[${asked.at}]`;
  const { web: engine } = engines;
  if (asked.engine === 'native') {
    if (searchesNatively(request)) return null;
    refuseLimit(asked, searchesNatively(unlimited(request)), 'that no endpoint of the models takes');
    throw refusal(`${param}.engine`, 'is "native", and no endpoint of the models searches by itself');
  }
  const beyond = limitBeyond(asked.limits, engine?.takes ?? []);
  if (asked.engine !== null && engine !== null) {
    refuseLimit(asked, beyond !== null, 'that the search engine does not take', beyond);
    return engine;
  }
  if (engine === null || beyond !== null) {
    if (searchesNatively(request)) return null;
    refuseLimit(asked, engine !== null || searchesNatively(unlimited(request)), 'that neither the search engine nor an endpoint of the models takes', beyond);
    throw refusal(param, 'asks for a web search, for which this router has no engine, and no endpoint of the models searches by itself');
  }
  const hasSearched = before !== undefined && before.search !== null;
  return !hasSearched && candidatesOf(request)[0]?.searchesNatively === true ? null : engine;
}

/** @param without whether a search without it is possible @throws `request.invalid` naming a limit of the search */
function refuseLimit({ at, limits }: AskedSearch, without: boolean, problem: string, limit: string | null = Object.keys(limits)[0] ?? null): void {
  if (without && limit !== null) throw refusal(`plugins[${at}].${limit}`, `limits the search in a way ${problem}`);
}

/** The request without what limits its search. */
function unlimited(request: ChatRequest): ChatRequest {
  const plugins = (request.plugins ?? []).map((plugin) => ({ ...plugin, include_domains: undefined, exclude_domains: undefined, user_location: undefined }));
  return { ...request, plugins: plugins as ChatRequest['plugins'] };
}

async function searched(staged: StagedCall, asked: AskedSearch, engine: SearchEngine, { nowMs, signal, report }: StageContext): Promise<StagedCall> {
  const query = queryOf(staged);
  if (query === null) {
    report?.({ type: 'plugin', name: 'web', summary: 'nothing to search for' });
    return staged;
  }
  const results = await engine.search(query, asked, signal);
  report?.({
    type: 'plugin',
    name: 'web',
    summary: `results=${results.length}`,
    data: { engine: engine.name, results: results.length },
    ...(engine.priceNano > 0 && { cost_usd: usdOfNano(engine.priceNano) }),
  });
  return {
    ...staged,
    request: withResults(staged.request, results, { prompt: asked.prompt, nowMs, boundaryId: randomHex(BOUNDARY_BYTES) }),
    annotations: [...staged.annotations, ...citationsOf(results)],
    search: { engine: engine.name, results: results.length },
    costNano: staged.costNano + engine.priceNano,
  };
}

function refusal(param: string, problem: string): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param} ${problem}`, { details: { param } });
}
