import { ReceivedAborts } from '#bus/received-aborts.ts';
import type { EffectKindDeps, EffectKindRow } from '../effect-kind.ts';
import { ExternalSearches } from '../search/external-search.ts';
import { KnowledgeBases } from '../search/knowledge-bases.ts';
import { discoverTools } from './discover-tools.ts';
import { toolItems } from './tool-items.ts';
import { ToolLists } from './tool-lists.ts';
import { ToolServers } from './tool-servers.ts';

/** A limit of its own, so that slow tools never delay callbacks. */
export const TOOL_CONCURRENCY = 128;
/** Since the last progress, and in all. */
const TIMEOUT_MS = 60_000;
const LONGEST_MS = 300_000;

/** Calls tools, reads their lists, and retrieves documents; lists the tools of the newest configuration in the background. */
export const toolKind = {
  name: 'tool',
  async open({ timeouts, concurrency, ...deps }: EffectKindDeps) {
    const { environment, bus, database, bundles, bundle, clock, intervalClock, log, tracing } = deps;
    const knowledgeBases = new KnowledgeBases(deps);
    const search = bundle?.body.manifest.agent_config.search ?? null;
    try {
      if (search?.type === 'pgvector') await knowledgeBases.check(search); // no fail point: reads
    } catch (error) {
      await knowledgeBases.close(); // no fail point: stops
      throw error;
    }
    const servers = new ToolServers({ environment, clock, intervalClock });
    const lists = new ToolLists({ database, servers, clock, log });
    const discovery = discoverTools({ bundles, lists, log });
    const external = new ExternalSearches({ environment });
    const aborts = new ReceivedAborts({ notices: bus.notices, clock });
    const { toolCallMs: timeoutMs = TIMEOUT_MS, longestToolCallMs: longestMs = LONGEST_MS } = timeouts;
    const limits = { timeoutMs, longestMs, concurrency: concurrency ?? TOOL_CONCURRENCY };
    return {
      items: toolItems({ ...deps, ...limits, servers, lists, external, knowledgeBases, environment, aborts, content: tracing.content }),
      async close() {
        await Promise.all([discovery.stop(), lists.stop(), aborts.stop()]); // no fail point: stops
        await Promise.all([servers.close(), external.close(), knowledgeBases.close()]); // no fail point: stops
      },
    };
  },
} as const satisfies EffectKindRow;
