import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { inject } from 'vitest';
import { root } from './run-program.ts';

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** Git ignores it. */
const SCREENSHOTS = join(root, 'tests/screenshots');

/** Chromium as tests find it. As root it needs to be told; it asks nothing of other hosts. */
export function openBrowser(): Promise<Browser> {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update'];
  return chromium.launch({ executablePath: inject('chromiumPath'), args });
}

/** What pages of a context do that none may: errors of scripts, breaches of their policy, requests to another host. */
export function watchedFaults(context: BrowserContext): string[] {
  const faults: string[] = [];
  context.on('weberror', (error) => faults.push(String(error.error())));
  context.on('console', (message) => {
    if (/Content Security Policy/i.test(message.text())) faults.push(message.text());
  });
  context.on('request', (request) => {
    if (!['127.0.0.1', 'localhost'].includes(new URL(request.url()).hostname)) faults.push(`a request to ${request.url()}`);
  });
  return faults;
}

/** What axe finds on a page, by rule. */
export async function axeFindings(page: Page): Promise<string[]> {
  // By the debugger, which the page's policy does not bind.
  await page.evaluate(await readFile(axePath, 'utf8'));
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: { run(): Promise<{ violations: Finding[] }> } }).axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

interface Finding {
  id: string;
  nodes: { html: string }[];
}

/** Kept as an artefact. */
export async function screenshot(page: Page, name: string): Promise<void> {
  await mkdir(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}
