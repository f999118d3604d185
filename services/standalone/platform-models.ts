import { fetch } from 'undici';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Manifest } from '#shared/contracts/manifest/manifest.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import type { PlatformRouter } from '#shared/keys/platform-router.ts';

/** Of all models: the documents may have taken most of the ten seconds of a start. */
const LOOK_UP_MS = 1_500;
const CONNECTIONS = 4;

interface PlatformModels {
  /** Models that the platform does not have: a sentence each. */
  missing: string[];
  /** Why it is not known. */
  warnings: string[];
}

/** Looks the manifest's models up at the router of its platform. A platform that does not answer stops no start. */
export async function platformModels(
  { agent_config: { llms } }: Manifest,
  { baseUrl, apiKey }: PlatformRouter,
  environment: Environment,
): Promise<PlatformModels> {
  const named: [field: string, model: string | null][] = [
    ['llms.default', llms.default],
    ...llms.fallback.map((model, index): [string, string] => [`llms.fallback[${index}]`, model]),
    ['llms.evaluation', llms.evaluation],
    ['llms.evaluation_fallback', llms.evaluation_fallback],
  ];
  const dispatcher = openOutbound(environment).openDispatcher({ connectTimeoutMs: LOOK_UP_MS, maxConnections: CONNECTIONS });
  const signal = AbortSignal.timeout(LOOK_UP_MS);
  const statusOf = async (model: string): Promise<number | null> => {
    const path = model.split('/').map(encodeURIComponent).join('/');
    try {
      const response = await fetch(`${baseUrl}/api/v1/models/${path}`, {
        headers: { authorization: `Bearer ${apiKey}` },
        signal,
        redirect: 'manual',
        dispatcher,
      });
      await response.body?.cancel();
      return response.status;
    } catch {
      return null;
    }
  };
  try {
    const found = await Promise.all(named.map(async ([field, model]) => ({ field, model, status: model === null ? 200 : await statusOf(model) })));
    const missing = found
      .filter(({ status }) => status === 404)
      .map(({ field, model }) => `agent_config.${field}: the platform at ${baseUrl} has no model ${JSON.stringify(model)}`);
    const odd = found.find(({ status }) => status !== 404 && status !== 200);
    return { missing, warnings: odd === undefined ? [] : [warningOf(odd.status, baseUrl)] };
  } finally {
    await dispatcher.destroy();
  }
}

function warningOf(status: number | null, baseUrl: string): string {
  const isRefused = status === 401 || status === 403;
  if (isRefused) return `agent_config.llms.api_key: the platform at ${baseUrl} does not accept it (${status}): model calls of the agent fail`;
  return `the models of the manifest could not be looked up at the platform at ${baseUrl}: ${status === null ? 'it does not answer' : `it answers ${status}`}`;
}
