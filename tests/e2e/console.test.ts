import type { BrowserContext, Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { axeFindings, keepScreenshot, type OpenedPage, startBrowser, type TestBrowser } from '../helpers/browser.ts';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { type TcpProxy, tcpProxy } from '../helpers/tcp-proxy.ts';

const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const ROWS = 100_000;
const NARROW = { width: 360, height: 740 };
/** Text, since the tests know no types of browsers: lines of the first word of a table. */
const LINES_OF_WORD = `
  (() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector('thead th'));
    return range.getClientRects().length;
  })()
`;

let receiver: CallbackReceiver;
let standalone: Standalone;
let agent: AgentClient;
let browser: TestBrowser;
let opened: OpenedPage;
let page: Page;
/** Of one login: the server takes few a minute. */
let cookies: Awaited<ReturnType<BrowserContext['cookies']>>;

beforeAll(async () => {
  receiver = await openCallbackReceiver();
  // An event that its receiver refuses once is a dead letter.
  const env = { OUTBOUND_ALLOW_HOSTS: receiver.host, AUTONOMOUS_CALLBACK_MAX_RETRIES: '1' };
  [standalone, browser] = await Promise.all([startStandalone({ env }), startBrowser()]);
  agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
  cookies = await logIn();
}, 180_000);
afterAll(async () => {
  await browser?.close();
  await standalone?.stop();
  await receiver?.close();
});

async function openPage(size: { width?: number; height?: number } = {}): Promise<void> {
  opened = await browser.open(standalone.agentUrl, { ...size, alsoAsks: [standalone.routerUrl] });
  await opened.context.addCookies(cookies);
  page = opened.page;
}

async function closePage(): Promise<void> {
  await opened.context.close();
  expect(opened.complaints).toEqual([]);
}

/** As a person does: from the page that one wants, over the form, and back to it. */
async function logIn(): Promise<typeof cookies> {
  const own = await browser.open(standalone.agentUrl);
  await own.page.goto('/console');
  await own.page.getByLabel(/key/i).fill(standalone.keys.agentKey);
  await own.page.getByRole('button').first().click();
  await own.page.waitForURL(/\/console$/);
  const kept = await own.context.cookies();
  await own.context.close();
  return kept;
}

async function show(hash = ''): Promise<void> {
  await page.goto(`${standalone.agentUrl}/console${hash === '' ? '' : `#/${hash}`}`);
}

async function openRouter(origin = standalone.routerUrl, key = standalone.keys.managementKey): Promise<void> {
  await page.goto(origin);
  await page.getByLabel('Management key').fill(key);
  await page.getByRole('button', { name: 'Open' }).click();
}

/** As the server answers a list. */
const listed = (items: unknown[], more: object = {}) => ({ json: { items, has_more: false, next_cursor: null, ...more } });

async function expectAccessible(name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await keepScreenshot(page, `${name}-${colorScheme}`);
    expect([name, colorScheme, await axeFindings(page, { coloursAlone: colorScheme === 'dark' })]).toEqual([name, colorScheme, []]);
  }
}

describe('the console of the agent', () => {
  beforeEach(() => openPage());
  afterEach(closePage);

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

  it('shows what moderation has found in the messages of a turn, escaped', async () => {
    const { id } = await agent.createSession({ title: 'Moderated', allow_greeting: false });
    await show(`sessions/${id}`);
    await agent.postMessage(id, 'Is this read?', {}, {}, '?moderation=auto');
    // The router of this deployment has no engine for it.
    await page.getByLabel('Turns of the session').getByText('failed').click();
    const turn = page.locator('.turn');
    const found = turn.locator('h4', { hasText: 'Moderation' }).locator('+ ul').getByRole('listitem');
    await found.getByText('unavailable', { exact: true }).waitFor();
    expect(await found.allInnerTexts()).toEqual([expect.stringContaining('offset 0')]);
    await page.getByLabel('Events', { exact: true }).getByText('unavailable', { exact: true }).waitFor();

    await page.route(/\/turns\/[0-9a-f]{32}\?begin_offset=\d+$/, async (route) => {
      const record = await (await route.fetch()).json();
      await route.fulfill({ json: { ...record, moderation: [{ ...record.moderation[0], status: 'flagged', flagged: true, tags: ['violence', HOSTILE] }] } });
    });
    await found.getByText(`violence, ${HOSTILE}`).waitFor();
    await found.getByText('flagged', { exact: true }).waitFor();
    expect(await page.locator('main img, main script').count()).toBe(0);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('shows the sessions at an address that it does not know, and for a session that is not there the reason alone', async () => {
    await show('no-such-section');
    await page.getByLabel('Sessions', { exact: true }).waitFor();
    await show('sessions/ses_nowhere');
    await page.getByRole('alert').getByText('not_found').waitFor();
    expect(await page.getByRole('heading', { name: 'Log' }).count()).toBe(0);
  });

  it('leads to a new login when its own no longer counts, and from a session to its page for conversations', async () => {
    const { id } = await agent.createSession({ allow_greeting: false });
    await show(`sessions/${id}`);
    const link = page.getByRole('link', { name: 'chat', exact: true });
    expect(await link.getAttribute('href')).toBe(`/chat?session=${id}`);
    await opened.context.clearCookies();
    await page.getByRole('link', { name: 'Log in again' }).first().click();
    await page.getByLabel('Key of the agent').waitFor();
    expect(new URL(page.url()).searchParams.get('next')).toBe('/console');
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
    await expect.poll(() => page.getByRole('button', { name: 'Replay' }).count(), { timeout: 60_000 }).toBe(0);
    expect(replayed).toEqual(['POST /dead_letters/run_1-callback/replay']);
  });

  it('draws a routine, and says so to readers that do not see it', async () => {
    await show('routines');
    await page.locator('main li a').first().click();
    await page.locator('svg .node').first().waitFor();
    expect(await page.locator('svg .node').count()).toBeGreaterThan(2);
    expect(await page.locator('svg .edge').count()).toBeGreaterThan(1);
    await expectAccessible('console-routine');
  });

  it('shows where a session stands in a routine, as it goes on', async () => {
    const { id } = await agent.createSession({ allow_greeting: false });
    await show(`routines/return-an-order/${id}`);
    await page.getByText('The session is at none of its steps.').waitFor();
    expect(await page.locator('svg .current').count()).toBe(0);
    await agent.postMessage(id, 'How can I return an order?');
    await page.getByText('The session is at ask-for-the-order.').waitFor();
    await agent.postMessage(id, 'AC12345678. It was delivered 10 days ago.');
    await page.getByText('The session is at ask-for-the-reason.').waitFor();
    expect(await page.locator('svg .current').allTextContents()).toEqual([expect.stringContaining('ask-for-the-reason')]);
  });

  it('shows how far the events of a session are posted, and replays one that was given up', async () => {
    const address = receiver.address(500, 204);
    const { id } = await agent.createSession({ allow_greeting: false, event_webhook_url: address.url });
    await show(`sessions/${id}`);
    await page.getByText('Event webhook').getByText('on', { exact: true }).waitFor();
    await agent.postMessage(id, 'Hello');
    await page.getByText(/next offset [1-9]/).waitFor();
    await page.getByRole('link', { name: 'Dead letters' }).click();
    await page.getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('dialog').getByText('outside the order').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();

    await page.getByText('There are no dead letters.').waitFor();
    const refused = String(address.received[0]?.body);
    await eventually(() => address.received.filter(({ body }) => String(body) === refused).length === 2, { timeoutMs: 60_000 });
  });

  it('shows the last traces, and where the time of one went', async () => {
    await show('traces');
    await page.getByLabel('List of traces').getByRole('link').first().click();
    await page.getByText('Spans within').waitFor();
    expect(await page.locator('.waterfall li').count()).toBeGreaterThan(0);
    await expectAccessible('console-traces');
  });

  it('has runs and deliveries, empty ones too', async () => {
    await show('runs');
    await page.getByText('There are no runs.').waitFor();
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByText('Nothing was posted.').waitFor();
    await page.getByText('No webhook was called.').waitFor();
    await expectAccessible('console-deliveries');
  });

  it('finds the sessions with a label and of a customer, and opens a log at an offset', async () => {
    const { id, customer_id: customer } = await agent.createSession({ title: 'The labelled one', labels: ['vip'], allow_greeting: false });
    await agent.createSession({ title: 'Another one', allow_greeting: false });
    await agent.postMessage(id, 'Hello');
    const [, second] = await agent.logUntil(id, ({ offset }) => offset === 1);
    await show();
    const rows = page.getByLabel('Sessions', { exact: true }).getByRole('listitem');
    await rows.getByText('Another one').waitFor();
    await page.getByLabel('Label', { exact: true }).fill('vip');
    await page.getByRole('button', { name: 'Filter' }).click();
    await expect.poll(() => rows.count()).toBe(1);
    await page.getByLabel('Label', { exact: true }).fill('');
    await page.getByLabel('Customer id').fill('cus_unknown');
    await page.keyboard.press('Enter');
    await page.getByText('There are no sessions.').waitFor();
    await page.getByLabel('Customer id').fill(customer);
    await page.keyboard.press('Enter');

    await rows.getByText('The labelled one').click();
    await page.getByLabel('From offset').fill('1');
    await page.getByRole('button', { name: 'Go' }).click();
    const events = page.getByLabel('Events', { exact: true }).getByRole('listitem');
    await expect.poll(() => events.first().locator('.number').textContent()).toBe('1');
    expect(await events.first().textContent()).toContain(second?.kind);
  });

  it('shows a run with its steps, its outcome and its callback, and cancels one that goes on when it was confirmed', async () => {
    const address = receiver.address(204);
    const headers = { authorization: `Bearer ${standalone.keys.agentKey}`, 'content-type': 'application/json' };
    const input = { claim_id: 'c-17', model: 'Acme Duo', delivered_on: '2026-03-01', description: `It leaks. ${HOSTILE}` };
    const path = '/routines/triage-warranty-claim/trigger';
    const body = JSON.stringify({ input, callback_url: address.url });
    const accepted = await fetch(`${standalone.agentUrl}${path}`, { method: 'POST', headers, body });
    const { run_id: runId } = (await accepted.json()) as { run_id: string };
    await eventually(() => address.received.length === 1, { timeoutMs: 60_000 });
    await show('runs');
    await page.getByLabel('Status of the runs').selectOption('succeeded');
    await page.getByLabel('List of runs').getByRole('link', { name: 'triage-warranty-claim' }).click();
    const run = page.getByLabel('Run', { exact: true });
    await run.getByText('delivered', { exact: true }).waitFor();
    await run.getByText('"decision"').waitFor();
    expect(await run.getByRole('listitem').count()).toBeGreaterThan(0);
    expect(await run.getByRole('heading').first().textContent()).toBe(runId);
    await expectAccessible('console-run');

    const cancelled: string[] = [];
    await page.route(new RegExp(`/runs/${runId}$`), async (route) =>
      route.fulfill({ json: { ...(await (await route.fetch()).json()), status: 'running', completed_at: null } }),
    );
    await page.route(/\/cancel$/, (route) => {
      cancelled.push(new URL(route.request().url()).pathname);
      return route.fulfill({ status: 202, json: {} });
    });
    await run.getByRole('button', { name: 'Cancel the run' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('fails as engine_error').waitFor();
    expect(cancelled).toEqual([]);
    await dialog.getByRole('button', { name: 'Cancel the run' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect(cancelled).toEqual([`/runs/${runId}/cancel`]);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('shows what webhooks have taken, escaped', async () => {
    const taken = { webhook: HOSTILE, body_hash: 'a', matched: [], runs: [], received_at: new Date(0).toISOString() };
    const other = { ...taken, webhook: 'orders', body_hash: 'b', matched: ['triage-warranty-claim'], runs: [{ run_id: 'run_1', status: 'accepted' }] };
    await page.route(/\/webhook_deliveries(\?|$)/, (route) => route.fulfill(listed([taken, other])));
    await show('deliveries');
    const rows = page.getByLabel('Deliveries to webhooks').getByRole('listitem');
    await rows.getByText(HOSTILE).waitFor();

    expect(await rows.first().textContent()).toContain('for no routine');
    expect(await rows.last().getByRole('link').getAttribute('href')).toBe('#/runs/run_1');
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
  beforeEach(() => openPage());
  afterEach(closePage);
  const open = async () => {
    await openRouter();
    await page.getByRole('link', { name: 'Models' }).waitFor();
  };

  it('takes a management key, which is nowhere but in its memory', async () => {
    await openRouter(standalone.routerUrl, standalone.keys.routerKey);
    await page.getByRole('alert').getByText('management key').waitFor();
    await expectAccessible('router-console-key');
    await open();
    expect(await page.evaluate('[localStorage.length, sessionStorage.length, document.cookie, location.href.includes("sk-")]')).toEqual([0, 0, '', false]);
    await page.reload();
    await page.getByLabel('Management key').waitFor();
  });

  it('shows models, and the health and the latency of their endpoints', async () => {
    await open();
    await page.getByLabel('List of models').getByRole('link').first().click();
    await page.getByRole('table').getByText('no known fault').first().waitFor();
    await expectAccessible('router-console-models');
    // Figures of the last half hour that no test could await: in the answer as it comes.
    const figures = { uptime_last_30m: 99.51, latency_last_30m: { p50: 812.4, p90: 12_345 }, throughput_last_30m: { p50: 41.26 } };
    await page.route(/\/endpoints$/, async (route) => {
      const { data } = await (await route.fetch()).json();
      await route.fulfill({ json: { data: { ...data, endpoints: data.endpoints.map((endpoint: object) => ({ ...endpoint, ...figures })) } } });
    });
    const row = page.getByRole('table').getByRole('row').nth(1);
    await row.getByRole('cell', { name: '99.5 %' }).waitFor();
    const columns = await page.getByRole('table').getByRole('columnheader').allTextContents();
    const shown = await row.getByRole('cell').allTextContents();
    expect(Object.fromEntries(shown.map((text, index) => [columns[index + 1], text]))).toEqual({
      Health: 'no known fault',
      'Uptime, 30 min': '99.5 %',
      'First token, p50 / p90': '812 ms / 12.3 s',
      'Tokens per second, p50': '41.3',
    });
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

  it('shows the last traces', async () => {
    await open();
    await page.getByRole('link', { name: 'Traces' }).click();
    await page.getByLabel('List of traces').getByRole('link').first().click();
    await page.getByText('Spans within').waitFor();
  });

  it('leads a browser from the port’s address, and answers others with the API’s name', async () => {
    const asked = async (accept: string) => fetch(standalone.routerUrl, { headers: { accept }, redirect: 'manual' });
    const [toBrowser, toOthers] = await Promise.all([asked('text/html'), asked('application/json')]);
    expect([toBrowser.status, toBrowser.headers.get('location')]).toEqual([302, '/console']);
    expect(await toOthers.json()).toMatchObject({ name: 'Switchyard model router', docs: '/openapi.json' });
    const policy = (await fetch(`${standalone.routerUrl}/console`)).headers.get('content-security-policy');
    expect(policy).toMatch(/^default-src 'self'; .*frame-ancestors 'none'/);
  });
});

describe('on a screen of 360 px', () => {
  beforeEach(() => openPage(NARROW));
  afterEach(closePage);

  /** Nothing is cut off at the side, and each button of a row is in its row. */
  async function expectFits(name: string): Promise<void> {
    const wider = await page.locator('html, main, .card, .row').evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map(String));
    expect([name, wider]).toEqual([name, []]);
    const outside = await page.locator('.row button').evaluateAll((buttons) =>
      buttons
        .filter((button) => {
          const [own, row] = [button.getBoundingClientRect(), button.closest('.row')?.getBoundingClientRect()];
          return row === undefined || own.bottom > row.bottom + 1 || own.right > row.right + 1;
        })
        .map(String),
    );
    expect([name, outside]).toEqual([name, []]);
    // The bar leaves the page most of the screen.
    expect((await page.locator('.bar').boundingBox())?.height).toBeLessThan(NARROW.height / 4);
    await expectAccessible(`narrow-${name}`);
  }

  it('the agent’s console fits', async () => {
    const { id } = await agent.createSession({ title: 'A conversation with a title that is longer than a small screen is wide', allow_greeting: false });
    const letter = {
      id: 'run_1-callback',
      source: 'delivery',
      session_id: id,
      reason: 'the receiver answered 503 five times',
      created_at: new Date(0).toISOString(),
    };
    await page.route(/\/dead_letters(\?|$)/, (route) => route.fulfill(listed([{ ...letter, replayable: true }])));
    for (const [hash, label] of [
      ['sessions', 'Sessions'],
      [`sessions/${id}`, 'Turns of the session'],
      ['routines/return-an-order', 'Steps'],
      ['deliveries', 'List of callbacks'],
      ['dead-letters', 'Dead letters'],
      ['traces', 'List of traces'],
    ] as const) {
      await show(hash);
      await page.getByLabel(label, { exact: true }).first().waitFor();
      await expectFits(hash.replaceAll(/\W.*/g, ''));
    }
  });

  it('the router’s console fits', async () => {
    await openRouter();
    await page.getByLabel('List of models').getByRole('link').first().click();
    await page.getByRole('table').waitFor();
    await expectFits('models');
    expect(await page.evaluate(LINES_OF_WORD)).toBe(1);
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Report as exposed' }).first().waitFor();
    await expectFits('keys');
  });
});

describe('on a cluster whose gateways are killed', () => {
  const roles = { 'router-gateway': 2, 'agent-gateway': 2, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 1 };
  let cluster: Cluster;
  const proxies: TcpProxy[] = [];
  beforeAll(async () => {
    cluster = await startCluster({ roles });
  }, 180_000);
  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await cluster?.stop();
  });
  afterEach(closePage);

  /** One address of all gateways of a kind, as of a balancer. */
  async function balanced(urls: () => string[]): Promise<string> {
    let turn = 0;
    const proxy = await tcpProxy(() => {
      const now = urls();
      turn += 1;
      return Number(new URL(now[turn % now.length] ?? '').port);
    });
    proxies.push(proxy);
    return `http://127.0.0.1:${proxy.port}`;
  }

  async function killAll(role: 'agent-gateway' | 'router-gateway'): Promise<void> {
    for (const gateway of cluster.running(role)) {
      gateway.signal('SIGKILL');
      await gateway.exited;
      await cluster.add(role);
    }
  }

  it('the agent’s console goes on: the log has each event once, lists are fresh, and a takeover is done', async () => {
    const origin = await balanced(() => cluster.agentUrls);
    const client = () => agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
    const { id } = await client().createSession({ allow_greeting: false });
    opened = await browser.open(origin, { height: 4_000, agentKey: cluster.keys.agentKey });
    page = opened.page;
    await page.goto(`/console#/sessions/${id}`);
    await client().postMessage(id, 'My machine leaks, and I want a refund');
    await page.getByLabel('Events', { exact: true }).getByText('My machine leaks').waitFor();
    await killAll('agent-gateway');
    await client().postMessage(id, 'How long is the warranty?');
    await page.getByRole('button', { name: 'Take over' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Take over' }).click();
    await page.getByRole('button', { name: 'Hand back' }).waitFor();
    const turns = page.getByLabel('Turns of the session').getByText('replied');
    await expect.poll(() => turns.count(), { timeout: 60_000 }).toBe(2);

    const offsets = (await client().poll(id, 0, '&limit=1000')).map(({ offset }) => String(offset));
    const rows = page.getByLabel('Events', { exact: true }).locator('li .number');
    await rows
      .getByText(offsets.at(-1) ?? '', { exact: true })
      .last()
      .waitFor();
    expect(await rows.allTextContents()).toEqual(offsets);
    expect((await client().readSession(id)).mode).toBe('manual');
    await page.getByRole('link', { name: 'Sessions' }).click();
    await client().createSession({ title: 'Made behind the kill', allow_greeting: false });
    await page.getByText('Made behind the kill').waitFor();
  });

  it('the router’s console goes on with the key that it has', async () => {
    const origin = await balanced(() => cluster.routerUrls);
    opened = await browser.open(origin);
    page = opened.page;
    await openRouter(origin, cluster.keys.managementKey);
    await page.getByLabel('List of models').getByRole('link').first().click();
    await page.getByRole('table').getByText('no known fault').first().waitFor();
    await killAll('router-gateway');
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByLabel('Keys', { exact: true }).getByRole('listitem').first().waitFor();
    await page.getByRole('link', { name: 'Models' }).click();
    await page.getByLabel('List of models').getByRole('link').first().click();
    await page.getByRole('table').getByText('no known fault').first().waitFor();
  });
});
