import type { ServerName } from './targets.ts';

/** What is known of a request that failed. */
export interface FailedRequest {
  server: ServerName;
  /** Where the address is from, such as `--url`. */
  addressFrom: string;
  /** Where the key is from, such as `AGENT_API_KEY`. */
  keyFrom: string;
  /** The settings of a valid key. */
  keyVariables: string;
  /** Null: there was no answer. */
  status: number | null;
  /** What answers at the address, where it could be found out. */
  found: ServerName | null;
  /** Of the server's API, and of the one that this program was made for, where they differ. */
  versions: { server: string; own: string } | null;
  /** Where ids that exist are found. */
  knownIds: string | null;
}

export const NAMES = { agent: 'agent server', router: 'model router' } as const;
const URL_VARIABLES = { agent: 'SWITCHYARD_AGENT_URL', router: 'SWITCHYARD_ROUTER_URL' } as const;
const TRANSIENT = [408, 425, 429, 500, 502, 503, 504];
const OF_ANY_VERSION = [401, 403, ...TRANSIENT];

/** What to do about a request that failed; null: the server's message says it. */
export function nextStep({ server, addressFrom, keyFrom, keyVariables, status, found, versions, knownIds }: FailedRequest): string | null {
  if (found !== null && found !== server) return `name the ${NAMES[server]} by --url or ${URL_VARIABLES[server]}; this address is from ${addressFrom}`;
  if (versions !== null && !(status !== null && OF_ANY_VERSION.includes(status)))
    return `use the command line of the server's own release: its API has version ${versions.server}, and this one was made for ${versions.own}`;
  if (status === null) return `start the ${NAMES[server]} (\`switchyard start\`), or correct the address, which is from ${addressFrom}`;
  if (status === 401 || status === 403) return `set ${keyVariables}, or name a file that has the key by --key-file; the refused key is from ${keyFrom}`;
  if (status === 404) return knownIds;
  if (TRANSIENT.includes(status)) return `repeat it later; the log of the ${NAMES[server]} says what is wrong there`;
  return null;
}
