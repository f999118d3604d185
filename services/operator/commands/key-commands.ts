import { type Command, InvalidArgumentError } from 'commander';
import type { TargetOptions } from '../targets.ts';
import { type CommandDeps, printable } from './dependencies.ts';
import { tableLines } from './table-lines.ts';
import { withTarget } from './target-options.ts';

interface KeyRecord {
  hash: string;
  name: string;
  label: string;
  disabled: boolean;
  limit: number | null;
  usage: number;
  expires_at: string | null;
}

type KeyOptions = TargetOptions & { json?: boolean };
type CreateOptions = KeyOptions & { limit?: number; limitReset?: string; expiresAt?: string; ownerEmail?: string };

/** Keys of callers of the model router, over its management API. */
export function addKeyCommands(program: Command, { environment, print, columns }: CommandDeps): void {
  const keys = program.command('keys').description("keys of the model router's callers; needs its management key, of ROUTER_MANAGEMENT_KEY or a file");
  const router = async (options: TargetOptions) => {
    const [{ findTarget }, { routerRequest }, { askTarget }] = await Promise.all([
      import('../targets.ts'),
      import('../router-api.ts'),
      import('../ask-target.ts'),
    ]);
    const target = await findTarget('router', options, environment);
    return async (...request: [method: 'GET' | 'POST' | 'DELETE', path: string, body?: object]) =>
      (await askTarget(target, KNOWN_HASHES, () => routerRequest(target, ...request))).body;
  };
  const pathOf = (hash: string) => `/keys/${encodeURIComponent(hash)}`;

  withTarget(keys.command('list'))
    .description('lists the keys, of which it prints hashes and labels alone')
    .option('--all', 'disabled ones, too')
    .option('--json', 'as a JSON array')
    .action(async ({ all = false, json = false, ...options }: KeyOptions & { all?: boolean }) => {
      const request = await router(options);
      const found: KeyRecord[] = [];
      for (;;) {
        const { data } = Object(await request('GET', `/keys?include_disabled=${all}&offset=${found.length}`)) as { data: KeyRecord[] };
        found.push(...data);
        if (data.length === 0) break;
      }
      if (json) return print(JSON.stringify(found, null, 2));
      for (const line of found.length === 0 ? ['There are no keys.'] : tableLines(HEAD, found.map(rowOf), columns)) print(line);
    });

  withTarget(keys.command('create'))
    .description('makes a key and prints it; it is shown only now')
    .argument('<name>', 'for people')
    .option('--limit <usd>', 'what may be spent with it', usd)
    .option('--limit-reset <period>', 'daily, weekly or monthly: when the limit begins anew')
    .option('--expires-at <time>', 'such as 2026-12-31T12:00:00Z')
    .option('--owner-email <address>', 'gets a mail when the key is exposed')
    .option('--json', 'the key and its record as JSON')
    .action(async (name: string, { json = false, limit, limitReset, expiresAt, ownerEmail, ...options }: CreateOptions) => {
      const body = { name, limit, limit_reset: limitReset, expires_at: expiresAt, owner_email: ownerEmail };
      const created = Object(await (await router(options))('POST', '/keys', body)) as { data: KeyRecord; key: string };
      if (json) return print(JSON.stringify(created, null, 2));
      print(created.key);
    });

  withTarget(keys.command('revoke'))
    .description('deletes a key: requests with it are refused at once')
    .argument('<hash>', 'as the list names it')
    .option('--json', 'the result as JSON')
    .action(async (hash: string, { json = false, ...options }: KeyOptions) => {
      const result = await (await router(options))('DELETE', pathOf(hash));
      print(json ? JSON.stringify(result) : `${hash} is deleted.`);
    });

  withTarget(keys.command('expose'))
    .description('disables a key that was found in public, and queues a mail to its owner')
    .argument('<hash>', 'as the list names it')
    .requiredOption('--where <place>', 'where it was found, for people')
    .option('--keep-enabled', 'does not disable it')
    .option('--json', 'the result as JSON')
    .action(async (hash: string, { json = false, where, keepEnabled = false, ...options }: KeyOptions & { where: string; keepEnabled?: boolean }) => {
      const result = await (await router(options))('POST', `${pathOf(hash)}/exposed`, { where, disable: !keepEnabled });
      const { data, mail_queued: isMailQueued } = Object(result) as { data: KeyRecord; mail_queued: boolean };
      print(
        json
          ? JSON.stringify(result, null, 2)
          : `${hash} is marked as exposed${data.disabled ? ' and disabled' : ''}; ${isMailQueued ? 'a' : 'no'} mail is queued.`,
      );
    });
}

const KNOWN_HASHES = '`switchyard keys list --all` has the hashes of those that exist';
const HEAD = ['HASH', 'NAME', 'LABEL', 'STATE', 'USED', 'LIMIT', 'EXPIRES'];

function rowOf({ hash, name, label, disabled, limit, usage, expires_at }: KeyRecord): string[] {
  return [hash, printable(name), label, disabled ? 'disabled' : 'enabled', usage.toFixed(4), limit === null ? '-' : String(limit), expires_at ?? '-'];
}

function usd(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value;
  throw new InvalidArgumentError('It must be an amount in USD, from 0.');
}
