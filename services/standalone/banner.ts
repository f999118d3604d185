import { sep } from 'node:path';
import type { RouterConfig } from '#shared/config/router-config.ts';

export interface BannerFacts {
  routerUrl: string;
  agentUrl: string;
  agentName: string;
  manifestPath: string;
  dataFolder: string;
  keysPath: string;
  routerKey: string;
  agentKey: string;
  routerConfig: RouterConfig;
  /** What works but is probably not meant, one sentence each. */
  warnings: readonly string[];
}

/** What `npm start` tells the person who typed it: what runs where, with which keys, and one line each to try it. */
export function banner(facts: BannerFacts): string {
  const { routerUrl, agentUrl, routerKey, agentKey } = facts;
  const json = `-H 'Content-Type: application/json'`;
  const router = `curl -N ${routerUrl}/api/v1/chat/completions -H 'Authorization: Bearer ${routerKey}' ${json} -d '{"stream":true,"messages":[{"role":"user","content":"Hello! What can you do?"}]}'`;
  const agent = `A=${agentUrl}; K='Authorization: Bearer ${agentKey}'; S=$(curl -s -X POST $A/sessions -H "$K" | grep -o 'ses_[0-9A-Z]*' | head -n 1); curl -s $A/sessions/$S/events -H "$K" ${json} -d '{"kind":"user_message","text":"How long is the warranty?"}' >/dev/null; curl -s "$A/sessions/$S/events?kinds=assistant_message" -H "$K"`;
  return `
Switchyard is running. Ctrl-C stops it.

  Model router   ${routerUrl}/api/v1
                 key ${routerKey}
  Agent server   ${agentUrl}
                 key ${agentKey}
  Agent          ${facts.agentName} (${nearby(facts.manifestPath)})
  Models         ${modelsLine(facts.routerConfig)}
  Data           ${nearby(facts.dataFolder)} (keys in ${nearby(facts.keysPath)})
${facts.warnings.map((warning) => `\n  Note: ${nearby(warning)}\n`).join('')}
Talk to the router:
${router}

Talk to the agent:
${agent}
`;
}

/** Paths below the folder that the person is in are told from there. */
function nearby(text: string): string {
  return text.replace(`${process.cwd()}${sep}`, '');
}

function modelsLine({ models, providers }: RouterConfig): string {
  const names = models.map((model) => model.id).join(', ');
  if (providers.some((provider) => provider.kind !== 'scripted')) return names;
  return `${names}\n                 No provider is configured, so the built-in scripted model answers.\n                 Set OPENAI_API_KEY (and OPENAI_BASE_URL) to use a real one.`;
}
