import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { axeFindings, openBrowser, screenshot, watchedFaults } from '../helpers/console-pages.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';

const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const ROWS = 100_000;

let standalone: Standalone;
let agent: AgentClient;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let faults: string[];
/** Of one login: the server takes few a minute. */
let loggedIn: Awaited<ReturnType<BrowserContext['storageState']>>;

beforeAll(async () => {
  [standalone, browser] = await Promise.all([startStandalone({}), openBrowser()]);
  agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
  loggedIn = await logIn();
}, 180_000);
afterAll(async () => {
  await browser?.close();
  await standalone?.stop();
});
beforeEach(async () => {
  context = await browser.newContext({ viewport: { width: 1_280, height: 800 }, storageState: loggedIn });
  context.setDefaultTimeout(30_000);
  faults = watchedFaults(context);
  page = await context.newPage();
});
afterEach(async () => {
  await context.close();
  expect(faults).toEqual([]);
});

/** As a person does: from the page that one wants, over the form, and back to it. */
async function logIn(): Promise<typeof loggedIn> {
  const own = await browser.newContext();
  const form = await own.newPage();
  await form.goto(`${standalone.agentUrl}/console`);
  await form.getByLabel(/key/i).fill(standalone.keys.agentKey);
  await form.getByRole('button').first().click();
  await form.waitForURL(/\/console$/);
  const state = await own.storageState();
  await own.close();
  return state;
}

async function show(hash = ''): Promise<void> {
  await page.goto(`${standalone.agentUrl}/console${hash === '' ? '' : `#/${hash}`}`);
}

/** As the server answers a list. */
const listed = (items: unknown[], more: object = {}) => ({ json: { items, has_more: false, next_cursor: null, ...more } });

async function expectAccessible(name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await screenshot(page, `${name}-${colorScheme}`);
    expect([name, colorScheme, await axeFindings(page)]).toEqual([name, colorScheme, []]);
  }
}

describe('the console of the agent', () => {
  it('shows a session as it goes on, its log, and why a turn answered as it did', async () => {
    const { id } = await agent.createSession({ title: `Ada ${HOSTILE}`, allow_greeting: false });
    await show();
    await page.getByRole('link', { name: /Ada/ }).click();
    await agent.postMessage(id, `My machine leaks, and I want a refund ${HOSTILE}`);
    const events = page.getByLabel('Events');
    await events.getByText('My machine leaks').waitFor();
    await page.getByLabel('Turns of the session').getByText('replied').click();
    await page.getByText('Model calls within').waitFor();
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    expect(await page.locator('.turn').innerText()).toContain('leaking-machine');
    expect(await page.locator('.waterfall li').count()).toBeGreaterThan(1);

    await events.getByText('My machine leaks').click();
    expect(await page.locator('pre').innerText()).toContain(`onerror=\\"document.title='owned'\\"`);
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(await page.title()).not.toBe('owned');
    await expectAccessible('console-session');
  });

  it('takes a conversation over, writes as the agent, and hands it back; each asks once', async () => {
    const { id } = await agent.createSession({ allow_greeting: false });
    await show(`sessions/${id}`);
    await page.getByRole('button', { name: 'Take over' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.innerText()).toContain('no longer answers');
    await page.keyboard.press('Escape');
    expect((await agent.readSession(id)).mode).toBe('auto');
    await page.getByRole('button', { name: 'Take over' }).press('Enter');
    await dialog.getByRole('button', { name: 'Take over' }).press('Enter');
    await page.getByLabel('Message in the name of the agent').fill('This is Ada’s colleague');
    expect((await agent.readSession(id)).mode).toBe('manual');
    await page.getByRole('button', { name: 'Send as agent' }).click();
    await page.getByLabel('Events').getByText('This is Ada’s colleague').waitFor();
    expect((await agent.poll(id)).map(({ source }) => source)).toContain('human_agent_on_behalf_of_ai_agent');
    await page.getByRole('button', { name: 'Hand back' }).click();
    await dialog.getByRole('button', { name: 'Hand back' }).click();
    await page.getByRole('button', { name: 'Take over' }).waitFor();
    expect((await agent.readSession(id)).mode).toBe('auto');
  });

  it('lists what was given up, escaped, and replays it when it was confirmed', async () => {
    const replayed: string[] = [];
    await show();
    const letter = { id: 'run_1-callback', source: 'delivery', session_id: 'ses_1', reason: HOSTILE, created_at: new Date(0).toISOString(), replayable: true };
    await page.route(/\/dead_letters(\?|$)/, (route) => route.fulfill(listed([letter, { ...letter, id: 'call_1', source: 'tool', replayable: false }])));
    await page.route(/\/replay/, (route) => {
      replayed.push(`${route.request().method()} ${new URL(route.request().url()).pathname}`);
      return route.fulfill({ status: 202, json: { id: letter.id, source: letter.source, outcome: 'replayed' } });
    });
    await page.getByRole('link', { name: 'Dead letters' }).click();
    await page.getByText(HOSTILE).first().waitFor();
    await expectAccessible('console-dead-letters');
    expect(await page.getByRole('button', { name: 'Replay' }).count()).toBe(1);
    await page.getByRole('button', { name: 'Replay' }).click();
    expect([await page.getByRole('dialog').innerText(), replayed]).toEqual([expect.stringContaining('posted to its receiver again'), []]);
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('button', { name: 'Replay' }).waitFor({ state: 'detached' });
    expect(replayed).toEqual(['POST /dead_letters/run_1-callback/replay']);
  });

  it('draws a routine, and says so to those who do not see it', async () => {
    await show('routines');
    await page.locator('main li a').first().click();
    await page.locator('svg .node').first().waitFor();
    expect(await page.locator('svg .node').count()).toBeGreaterThan(2);
    expect(await page.locator('svg .edge').count()).toBeGreaterThan(1);
    await expectAccessible('console-routine');
  });

  it('has runs and deliveries, empty ones too', async () => {
    await show('runs');
    await page.getByText('There are no runs.').waitFor();
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByText('Nothing was posted.').waitFor();
    await page.getByText('No webhook was called.').waitFor();
    await expectAccessible('console-deliveries');
  });

  it(`scrolls through ${ROWS} sessions, of which the visible ones alone are in the document`, async () => {
    const size = 20_000;
    const session = await agent.createSession();
    await page.route(/\/sessions\?/, async (route: Route) => {
      const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0);
      const items = Array.from({ length: size }, (_, index) => ({ ...session, id: `ses_${from + index}`, title: `Session ${from + index}` }));
      await route.fulfill(listed(items, from + size < ROWS ? { has_more: true, next_cursor: String(from + size) } : {}));
    });
    await show();
    const list = page.getByLabel('Sessions', { exact: true });
    await page.getByText('Session 0', { exact: true }).waitFor();
    await eventually(
      async () => {
        await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
        return (await page.getByText(`Session ${ROWS - 1}`, { exact: true }).count()) === 1;
      },
      { timeoutMs: 60_000 },
    );
    expect(await list.locator('li').count()).toBeLessThan(80);
  });
});

describe('the console of the router', () => {
  const open = async () => {
    await page.goto(standalone.routerUrl);
    await page.getByLabel('Management key').fill(standalone.keys.managementKey);
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('link', { name: 'Models' }).waitFor();
  };

  it('takes a management key, which is nowhere but in its memory', async () => {
    await page.goto(standalone.routerUrl);
    await page.getByLabel('Management key').fill(standalone.keys.routerKey);
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('alert').getByText('management key').waitFor();
    await expectAccessible('router-console-key');
    await open();
    expect(await page.evaluate('[localStorage.length, sessionStorage.length, document.cookie, location.href.includes("sk-")]')).toEqual([0, 0, '', false]);
    await page.reload();
    await page.getByLabel('Management key').waitFor();
  });

  it('shows models and the health of their endpoints', async () => {
    await open();
    await page.getByLabel('List of models').getByRole('link').first().click();
    await page.getByRole('table').getByText('no known fault').first().waitFor();
    await expectAccessible('router-console-models');
  });

  it('shows keys with use and limits, escaped; disabling one asks once', async () => {
    const api = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${standalone.routerUrl}/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${standalone.keys.managementKey}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return (await response.json()) as { data: { hash: string; disabled: boolean } };
    };
    const { data } = await api('POST', '/keys', { name: `<b>Ada</b> <img src=x>`, limit: 5 });
    await open();
    await page.getByRole('link', { name: 'Keys' }).click();
    const row = page.getByRole('listitem').filter({ hasText: '<b>Ada</b> <img src=x>' });
    await row.getByText('$5.00 of $5.00 left').waitFor();
    await row.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('dialog').getByText('are refused from now on').waitFor();
    expect((await api('GET', `/keys/${data.hash}`)).data.disabled).toBe(false);
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await row.getByRole('button', { name: 'Enable' }).waitFor();
    expect((await api('GET', `/keys/${data.hash}`)).data.disabled).toBe(true);
    await row.getByRole('button', { name: 'Report as exposed' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Report as exposed' }).click();
    await row.getByText(/^exposed/).waitFor();
    await page.getByLabel('Exposed keys alone').check();
    await row.waitFor();
    expect(await page.getByLabel('Keys', { exact: true }).getByRole('listitem').count()).toBe(1);
    await expectAccessible('router-console-keys');
  });

  it('says why a call went to its provider', async () => {
    const response = await fetch(`${standalone.routerUrl}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${standalone.keys.routerKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }] }),
    });
    const { id } = (await response.json()) as { id: string };
    await open();
    await page.getByRole('link', { name: 'Generations' }).click();
    await page.getByLabel('Id of a generation').fill(id);
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('Why this provider').waitFor();
    await page.getByText('answered', { exact: true }).waitFor();
    await expectAccessible('router-console-generation');
  });

  it('leads a browser from the port’s address, and tells others which API this is', async () => {
    const asked = async (accept: string) => fetch(standalone.routerUrl, { headers: { accept }, redirect: 'manual' });
    const [toBrowser, toOthers] = await Promise.all([asked('text/html'), asked('application/json')]);
    expect([toBrowser.status, toBrowser.headers.get('location')]).toEqual([302, '/console']);
    expect(await toOthers.json()).toMatchObject({ name: 'Switchyard model router', docs: '/openapi.json' });
    const policy = (await fetch(`${standalone.routerUrl}/console`)).headers.get('content-security-policy');
    expect(policy).toMatch(/^default-src 'self'; .*frame-ancestors 'none'/);
  });
});
