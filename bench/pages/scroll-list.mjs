import { join } from 'node:path';
import { recordTasks } from './record-tasks.mjs';

/** @typedef {import('./open-chromium.mjs').Page} Page */

const ROWS = 100_000;
const SCROLL_TIMEOUT_MS = 1_800_000;

/**
 * Stores sessions beside the one that is there, each with its record: `npm start` must not run meanwhile.
 *
 * @param {string} dataFolder of `npm start`
 */
export async function storeSessions(dataFolder) {
  /** @type {typeof import('../../shared/storage/pglite/open-pglite.ts')} */
  const { openPglite } = await import(new URL('../../dist/shared/storage/pglite/open-pglite.js', import.meta.url).href);
  const database = await openPglite({ folder: join(dataFolder, 'database') });
  try {
    await database.query(
      `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, customer_id)
       select made.id, p, head, machine_v, snapshot, replace(record::text, sessions.id, made.id)::json, created_at - n * interval '1 second', updated_at, customer_id
       from (select * from sessions limit 1) as sessions, generate_series(1, $1::int) as n, lateral (select 'ses_' || lpad(n::text, 26, '0') as id) as made`,
      [ROWS],
    );
  } finally {
    await database.close();
  }
}

/** Scrolls down by a screen in each frame, and waits for the next page of the server where the loaded rows end. Text, since it runs in the page. */
const SCROLL = `
  new Promise((resolve) => {
    const list = document.querySelector('.list');
    const taskMs = [];
    const observer = new PerformanceObserver((all) => taskMs.push(...all.getEntries().map(({ duration }) => duration)));
    observer.observe({ type: 'longtask' });
    const rows = () => Math.round(list.firstElementChild.offsetHeight / list.querySelector('li').offsetHeight);
    const step = () => {
      if (list.scrollHeight - list.scrollTop - list.clientHeight < 2 && rows() > ${ROWS}) {
        taskMs.push(...observer.takeRecords().map(({ duration }) => duration));
        resolve({ rows: rows(), taskMs });
        return;
      }
      list.scrollTop += list.clientHeight;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  })
`;

/**
 * The console's list of sessions from its first row to its last, through all pages of the server.
 *
 * @param {Page} page that has logged in @param {string} origin of the agent server
 * @returns {Promise<{ rows: number, taskMs: number[], cpuMs: number[] }>} of the tasks of 50 ms and more; and what tasks used of the CPU, most first
 */
export async function scrollSessions(page, origin) {
  page.setDefaultTimeout(SCROLL_TIMEOUT_MS);
  await page.goto(`${origin}/console`);
  await page.locator('.list li').first().waitFor();
  const recorded = await recordTasks(page);
  const { rows, taskMs } = /** @type {{ rows: number, taskMs: number[] }} */ (await page.evaluate(SCROLL));
  return { rows, taskMs, cpuMs: await recorded.end() };
}
