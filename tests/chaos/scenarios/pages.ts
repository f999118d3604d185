import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { testProgram } from '../../../scripts/servers/test-programs.mjs';
import type { ConversationEvent } from '../../../shared/contracts/agent/conversation-event.ts';
import { type OpenedPage, startBrowser, type TestBrowser } from '../../helpers/browser.ts';
import { say, sessionOf, shownAs, shownLog } from '../../helpers/chat-page.ts';
import { eventually } from '../../helpers/eventually.ts';
import { isQuiet, type SentMessages } from '../../helpers/session-logs.ts';
import { tcpProxy } from '../../helpers/tcp-proxy.ts';
import { type Environment, TIMEOUT_MS } from '../environment.ts';
import { checkAuditor, checkLogs } from '../invariants.ts';
import { oneOf } from '../scenario.ts';

/** A browser has six connections to one server: four streams of tabs leave two to their requests. */
const PROFILES = 5;
const TABS = 4;
/** Consoles, which show all kinds of events, each of one tab's session. */
const CONSOLES = 2;
/** So many events of a console are in view, and so in the document. */
const TALL = { width: 1_280, height: 6_000 };
/** A fault is injected at a random moment of this, while the agent answers. */
const SHORT_PAUSE_MS = 400;

/** A tab with the chat page, and what was said in it. */
interface Tab {
  number: number;
  page: Page;
  texts: string[];
}

/**
 * Twenty pages talk, each in a session of its own, while gateways and hosts are killed. They have one address, as behind a balancer: each connection goes to
 * the next gateway. @throws when a page does not show each event that is stored, or shows one twice
 */
export async function pagesTalk(environment: Environment): Promise<void> {
  const browser = await startBrowser(await testProgram('chromium'));
  const proxy = await tcpProxy(() => Number(new URL(environment.nextAgentUrl()).port));
  const origin = `http://127.0.0.1:${proxy.port}`;
  try {
    const agentKey = environment.cluster.keys.agentKey;
    const profiles = await Promise.all(Array.from({ length: PROFILES }, () => browser.open(origin, { agentKey })));
    const tabs = await openTabs(profiles);
    const consoles = await openConsoles(browser, origin, agentKey, tabs);
    for (const fault of [gatewaysKilled, hostKilled, hostAndGatewayKilled]) await talkOn(environment, tabs, fault);

    const sessions = new Map(tabs.map(({ page, texts }): [string, SentMessages] => [sessionOf(page), { texts, inOrder: true }]));
    await eventually(() => isQuiet(environment.database, sessions), { timeoutMs: TIMEOUT_MS });
    await checkLogs(environment, { sessions });
    for (const { page } of tabs) await checkChat(environment, page);
    for (const [index, page] of consoles.pages.entries()) await checkConsole(environment, page, sessionOf(tabAt(tabs, index).page));
    expect([...profiles, consoles.profile].flatMap(({ complaints }) => complaints)).toEqual([]);
    await checkAuditor(environment);
    environment.figures.pages += tabs.length + consoles.pages.length;
  } finally {
    await browser.close();
    await proxy.close();
  }
}

/** Tabs that have said their first words, so that each has a session. */
async function openTabs(profiles: readonly OpenedPage[]): Promise<Tab[]> {
  const ofProfiles = await Promise.all(
    profiles.map(async ({ page, context }) => [page, ...(await Promise.all(Array.from({ length: TABS - 1 }, () => context.newPage())))]),
  );
  const tabs = ofProfiles.flat().map((page, number): Tab => ({ number, page, texts: [] }));
  await Promise.all(
    tabs.map(async (tab) => {
      await tab.page.goto('/chat');
      await tab.page.getByLabel('Message', { exact: true }).waitFor();
      await sayIn(tab);
      await answered(tab);
    }),
  );
  return tabs;
}

async function openConsoles(browser: TestBrowser, origin: string, agentKey: string, tabs: readonly Tab[]) {
  const profile = await browser.open(origin, { agentKey, ...TALL });
  const pages = [profile.page, ...(await Promise.all(Array.from({ length: CONSOLES - 1 }, () => profile.context.newPage())))];
  await Promise.all(
    pages.map(async (page, index) => {
      await page.goto(`/console#/sessions/${sessionOf(tabAt(tabs, index).page)}`);
      await page.getByLabel('Events', { exact: true }).getByRole('listitem').first().waitFor();
    }),
  );
  return { profile, pages };
}

/** Each tab says two things, the second before the first is answered; the fault comes in between, and all are answered. */
async function talkOn(environment: Environment, tabs: readonly Tab[], inject: (environment: Environment) => Promise<void>): Promise<void> {
  await Promise.all(tabs.map((tab) => sayIn(tab, ' slowly')));
  await eventually(() => environment.model.inFlight > 0, { timeoutMs: TIMEOUT_MS });
  // A plain wait: the seed decides the moment of the fault.
  await delay(environment.random() * SHORT_PAUSE_MS);
  await Promise.all([inject(environment), ...tabs.map((tab) => sayIn(tab))]);
  await Promise.all(tabs.map(answered));
}

async function sayIn(tab: Tab, how = ''): Promise<void> {
  const text = `page-${tab.number}-says-${tab.texts.length}${how}`;
  tab.texts.push(text);
  await say(tab.page, text);
}

/** Until the page has the answer to its last words. */
async function answered({ page, texts }: Tab): Promise<void> {
  await page
    .locator('.message.agent[data-offset]', { hasText: `You said: ${texts.at(-1)}` })
    .last()
    .waitFor({ timeout: 2 * TIMEOUT_MS });
}

/** One after the other, so that each page has lost its connection. */
async function gatewaysKilled(environment: Environment): Promise<void> {
  for (const gateway of environment.cluster.running('agent-gateway')) {
    await environment.end(gateway, 'SIGKILL');
    await environment.add('agent-gateway');
  }
}

/** Until its partitions are owned elsewhere; how long that takes is another plan's, since the browser takes CPU. */
async function hostKilled(environment: Environment): Promise<void> {
  const host = oneOf(environment, environment.hosts());
  await environment.end(host, 'SIGKILL');
  await environment.everyPartitionOwned(host.name);
  await environment.addHost();
}

async function hostAndGatewayKilled(environment: Environment): Promise<void> {
  const gateway = oneOf(environment, environment.cluster.running('agent-gateway'));
  await Promise.all([hostKilled(environment), environment.end(gateway, 'SIGKILL')]);
  await environment.add('agent-gateway');
}

async function checkChat({ database }: Environment, page: Page): Promise<void> {
  const session = sessionOf(page);
  const log = (await storedLog(database, session)).flatMap(shownAs);
  // Nothing comes any more; the page may still be behind.
  await page
    .locator(`.log [data-offset="${log.at(-1)?.offset}"]`)
    .last()
    .waitFor();
  expect(await shownLog(page), `what a page shows of ${session}`).toEqual(log);
}

async function checkConsole({ database }: Environment, page: Page, session: string): Promise<void> {
  const log = await storedLog(database, session);
  const rows = page.getByLabel('Events', { exact: true }).locator('li .number');
  await rows
    .getByText(String(log.at(-1)?.offset), { exact: true })
    .last()
    .waitFor();
  expect(await rows.allTextContents(), `what a console shows of ${session}`).toEqual(log.map(({ offset }) => String(offset)));
}

async function storedLog(database: Environment['database'], session: string): Promise<ConversationEvent[]> {
  const { rows } = await database.query<{ body: ConversationEvent }>('select body from events where session_id = $1 order by off', [session]);
  return rows.map(({ body }) => body);
}

function tabAt(tabs: readonly Tab[], index: number): Tab {
  const tab = tabs[index];
  if (tab === undefined) throw new Error(`there is no tab ${index}`);
  return tab;
}
