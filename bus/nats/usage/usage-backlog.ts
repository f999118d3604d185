import type { UsageBacklog } from '../../bus.ts';
import type { NatsLink } from '../connection/link.ts';
import { streams } from '../streams.ts';

/** A late answer is useless: it is asked for again soon. */
const BUDGET_MS = 1_000;

/** What is not accepted yet. */
export async function usageBacklog(link: NatsLink): Promise<UsageBacklog> {
  const { state } = await link.retries.callApi('describe the usage log', BUDGET_MS, () => link.manager.streams.info(streams.usage.name));
  return { records: state.messages, oldestAtMs: state.messages === 0 ? null : Date.parse(state.first_ts) };
}
