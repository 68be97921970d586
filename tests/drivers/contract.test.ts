// Drivers, held to the contract of conversation stores.

import { describe, it } from "node:test";
import { conversationContract } from "../contract/conversations.ts";
import { driverPlace, folderWithDriverPlace } from "../contract/drivers.ts";

describe("contract: sqlite", () => conversationContract(it, () => driverPlace("sqlite")));
describe("contract: folders, kept by sqlite", () =>
  conversationContract(it, () => folderWithDriverPlace("sqlite")));
