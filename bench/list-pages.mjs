import { prepare } from '../scripts/prepare.mjs';
import { startTestPostgres } from '../scripts/servers/test-services.mjs';

const ROWS = 1_000_000;
const REPEATS = 15;
const AIM_MS = 20;

/** @typedef {import('../shared/storage/database.ts').Database} Database */
/** @typedef {{ name: string, run: (database: Database) => Promise<unknown> }} Case */

/**
 * Prints what pages of GET /sessions and GET /customers cost with a million of each in PostgreSQL: `node bench/list-pages.mjs`. One customer has 300,000 sessions,
 * another the oldest 300,000; one label is on half of all, another on the oldest 1 % alone. The plans and times of the statements are those of `explain (analyze)`.
 */
async function main() {
  await prepare({ build: true });
  const { migrate, openPostgres, silentLog, SessionList, CustomerRows } = await modules();
  const server = await startTestPostgres();
  const database = await openPostgres({ url: server.url, applicationName: 'list-pages', log: silentLog });
  try {
    await migrate(database);
    console.log(`storing ${ROWS.toLocaleString('en')} customers and sessions …`);
    await fill(database);
    const at = (/** @type {number} */ index) => ({ createdAtMs: Date.parse('2026-01-01T00:00:00Z') + index * 1_000, id: idOf(index) });
    const page = { sort: /** @type {const} */ ('desc'), after: null, limit: 50 };
    /** @type {Case[]} */
    const cases = [];
    /** @type {[string, { customerId: string | null, label: string | null }][]} */
    const filters = [
      ['all', { customerId: null, label: null }],
      ['of a customer with 300,000', { customerId: 'big', label: null }],
      ['of a customer with the oldest 300,000', { customerId: 'early', label: null }],
      ['of a customer with 1', { customerId: 'c500009', label: null }],
      ['with the common label', { customerId: null, label: 'common' }],
      ['with the label of the oldest 1 %', { customerId: null, label: 'rare' }],
      ['of a customer, with the rare label', { customerId: 'early', label: 'rare' }],
      ['with no such label', { customerId: null, label: 'none' }],
    ];
    for (const [name, filter] of filters) {
      cases.push({ name: `sessions ${name}, first page`, run: (on) => new SessionList(on).page(filter, page) });
      cases.push({ name: `sessions ${name}, page from the middle`, run: (on) => new SessionList(on).page(filter, { ...page, after: at(ROWS / 2) }) });
      cases.push({ name: `sessions ${name}, oldest first`, run: (on) => new SessionList(on).page(filter, { ...page, sort: 'asc' }) });
    }
    cases.push({ name: 'customers, first page', run: (on) => new CustomerRows(on).list({ externalId: null, ...page }) });
    cases.push({ name: 'customers, page from the middle', run: (on) => new CustomerRows(on).list({ externalId: null, ...page, after: at(ROWS / 2) }) });
    cases.push({ name: 'customers by external id', run: (on) => new CustomerRows(on).list({ externalId: 'crm/7', ...page }) });
    let slow = 0;
    for (const one of cases) {
      const { milliseconds, plan } = await explained(database, one);
      if (milliseconds > AIM_MS) slow += 1;
      console.log(`${milliseconds.toFixed(2).padStart(8)} ms  ${one.name}: ${plan}`);
    }
    console.log(`${slow} of ${cases.length} over ${AIM_MS} ms`);
  } finally {
    await database.close();
    await server.close();
  }
}

/** The median execution, and the nodes of its plan that read tables. @param {Database} database @param {Case} one */
async function explained(database, { run }) {
  /** @type {number[]} */
  const times = [];
  let plan = '';
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    await run({
      ...database,
      transaction: (work) => database.transaction(work),
      close: () => database.close(),
      query: async (statement, parameters) => {
        const text = typeof statement === 'string' ? statement : statement.text;
        const explain = `explain (analyze, format json) ${text}`;
        const { rows } = await database.query(explain, parameters);
        const [{ Plan: root, 'Execution Time': milliseconds }] = Object.values(/** @type {object} */ (rows[0]))[0];
        times.push(milliseconds);
        plan = scansIn(root).join(', ');
        return database.query(statement, parameters);
      },
    });
  }
  return { milliseconds: times.sort((left, right) => left - right)[Math.floor(times.length / 2)] ?? Number.NaN, plan };
}

/** @param {Record<string, any>} node @returns {string[]} */
function scansIn(node) {
  const own = node['Relation Name'] === undefined ? [] : [`${node['Node Type']} ${node['Index Name'] ?? node['Relation Name']}`];
  return [...own, ...(node['Plans'] ?? []).flatMap(scansIn)];
}

/** @param {number} index */
function idOf(index) {
  return `ses_${String(index).padStart(26, '0')}`;
}

/** @param {Database} database */
async function fill(database) {
  const options = { statementTimeoutMs: 600_000 };
  const at = `timestamptz '2026-01-01 00:00:00Z' + n * interval '1 second'`;
  const statements = [
    `insert into customers (id, name, external_id, tags, metadata, created_at, updated_at)
     select 'c' || n, 'Customer ' || n, 'crm/' || n, '{vip}', '{"plan":"gold"}', ${at}, ${at} from generate_series(1, ${ROWS}) as n`,
    `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, customer_id)
     select 'ses_' || lpad(n::text, 26, '0'), n % 64, 12, 3001, json_build_object('text', repeat('s', 600)), json_build_object('id', n, 'text', repeat('r', 400)),
       ${at}, ${at}, case when n <= ${ROWS * 0.3} then 'early' when n % 10 < 4 then 'big' else 'c' || n end from generate_series(1, ${ROWS}) as n`,
    `insert into session_labels (label, customer_id, created_at, session_id)
     select label, customer_id, created_at, id from sessions, lateral (
       select 'common' as label where right(id, 1)::int % 2 = 0 union all select 'rare' where created_at < timestamptz '2026-01-01 00:00:00Z' + ${ROWS / 100} * interval '1 second') as l`,
  ];
  for (const statement of statements) await database.transaction((handle) => handle.query(statement), options);
  for (const table of ['customers', 'sessions', 'session_labels']) await database.query(`analyze ${table}`);
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../dist/${path}`, import.meta.url).href;
  /** @type {typeof import('../shared/storage/migrate.ts')} */
  const { migrate } = await import(dist('shared/storage/migrate.js'));
  /** @type {typeof import('../shared/storage/postgres/open-postgres.ts')} */
  const { openPostgres } = await import(dist('shared/storage/postgres/open-postgres.js'));
  /** @type {typeof import('../shared/telemetry/log.ts')} */
  const { silentLog } = await import(dist('shared/telemetry/log.js'));
  /** @type {typeof import('../services/agent-gateway/session-list.ts')} */
  const { SessionList } = await import(dist('services/agent-gateway/session-list.js'));
  /** @type {typeof import('../services/agent-gateway/customers/customer-rows.ts')} */
  const { CustomerRows } = await import(dist('services/agent-gateway/customers/customer-rows.js'));
  return { migrate, openPostgres, silentLog, SessionList, CustomerRows };
}

await main();
