import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { ledgerCases } from './test-support/ledger-cases.ts';

ledgerCases('the ledger in the embedded database', openTestDatabase);
