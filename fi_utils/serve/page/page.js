// SPDX-License-Identifier: Apache-2.0
// page.js - fetches the documents of `fi_mesh serve --http` again and again, and shows them.
"use strict";

const PERIOD_MS = 2000;
const CHECK_PERIOD_MS = 30000;
const LATE_MS = 15000;

let last = 0;		// when the latest figures arrived
let picture = null;	// the URL of the one that is shown

const byId = (id) => document.getElementById(id);

function rateText(bytes) {
	if (bytes === null || bytes === undefined)
		return "-";
	const bits = 8 * bytes;

	if (bits >= 1e9)
		return (bits / 1e9).toFixed(2) + " Gb/s";
	if (bits >= 1e6)
		return (bits / 1e6).toFixed(1) + " Mb/s";
	return bits >= 1e3 ? (bits / 1e3).toFixed(0) + " kb/s" : bits.toFixed(0) + " b/s";
}

function speedText(mbps) {
	return !mbps ? "-" : mbps >= 1000 ? mbps / 1000 + " Gb/s" : mbps + " Mb/s";
}

// Texts come from other nodes: they are never markup.
function cell(text, className) {
	const td = document.createElement("td");

	td.textContent = text;
	if (className)
		td.className = className;
	return td;
}

// titles: a name, or [name, class]; rows: lists of cells.
function fill(table, titles, rows, empty) {
	const head = document.createElement("tr");
	const lines = [head];

	for (const title of titles) {
		const th = document.createElement("th");
		const [name, className] = Array.isArray(title) ? title : [title, ""];

		th.textContent = name;
		th.className = className;
		head.append(th);
	}
	for (const row of rows) {
		const tr = document.createElement("tr");

		tr.append(...row);
		lines.push(tr);
	}
	if (!rows.length) {
		const tr = document.createElement("tr");
		const td = cell(empty, "unknown");

		td.colSpan = titles.length;
		tr.append(td);
		lines.push(tr);
	}
	table.replaceChildren(...lines);
}

async function get(path, error) {
	try {
		const answer = await fetch(path);

		if (!answer.ok)
			throw new Error(await answer.text());
		error.hidden = true;
		last = Date.now();
		return answer;
	} catch (failure) {
		error.textContent = failure.message;
		error.hidden = false;
		return null;
	}
}

function sum(a, b) {
	return a === null && b === null ? null : (a || 0) + (b || 0);
}

function nicRow(nic) {
	const words = {idle: "idle", kernel: "kernel (TCP)", rdma: "RDMA", both: "RDMA and kernel"};
	const rdma = nic.rdma || {tx_bytes_per_s: null, rx_bytes_per_s: null, errors: 0};
	const errors = nic.errors + (rdma.errors || 0);

	return [cell(nic.netdev), cell(nic.rdma ? nic.rdma.device : "-"),
		nic.up ? cell(speedText(nic.speed_mbps), "number") : cell("link down", "down"),
		cell(words[nic.traffic] || "-"),
		cell(rateText(sum(nic.tx_bytes_per_s, rdma.tx_bytes_per_s)), "number"),
		cell(rateText(sum(nic.rx_bytes_per_s, rdma.rx_bytes_per_s)), "number"),
		cell(errors, errors ? "number warn" : "number")];
}

function pathState(link) {
	if (link.down_paths)
		return cell(link.down_paths + " of " + link.open_paths + " down", "down");
	return link.open_paths ? cell(link.open_paths + " up", "up") : cell("closed", "unknown");
}

function pathRow(link) {
	const arrow = link.direction === "send" ? " \u2192 " : " \u2190 ";
	const via = link.via === "direct" ? "" : ", " + link.via;

	return [cell(link.peer), cell(link.nic), cell(link.local + arrow + link.remote, "mono"),
		cell(link.provider + via), pathState(link),
		cell(rateText(link.bytes_per_s), "number"), cell(link.messages, "number"),
		cell(link.losses, link.losses ? "number warn" : "number"),
		cell(link.errors, link.errors ? "number fail" : "number"),
		cell(link.pid, "number")];
}

async function watchShow() {
	const answer = await get("watch.json", byId("watch-error"));

	if (!answer)
		return;
	const found = await answer.json();

	fill(byId("nics"), ["NIC", "RDMA", ["speed", "number"], "traffic", ["sends", "number"],
		["receives", "number"], ["errors", "number"]], found.nics.map(nicRow),
		"No NIC of this node can carry the mesh.");
	fill(byId("paths"), ["peer", "NIC", "addresses", "provider", "paths", ["rate", "number"],
		["messages", "number"], ["losses", "number"], ["errors", "number"],
		["pid", "number"]], found.links.map(pathRow), found.processes.length ?
		"No connection is open." : "No process of this user uses the plugin now.");
}

async function meshShow() {
	const answer = await get("mesh.svg", byId("mesh-error"));

	if (!answer)
		return;
	const before = picture;

	picture = URL.createObjectURL(await answer.blob());
	byId("mesh").src = picture;
	byId("mesh").hidden = false;
	if (before)
		URL.revokeObjectURL(before);
}

async function nameShow() {
	const answer = await get("mesh.json", byId("mesh-error"));

	if (!answer)
		return;
	const name = (await answer.json()).nodes[0].name;

	byId("node").textContent = name;
	document.title = "fi_mesh: " + name;
}

function checkRows(check) {
	return check.findings.map((finding, i) => {
		const text = cell(finding.text);

		if (finding.fix) {
			const fix = document.createElement("div");

			fix.className = "fix";
			fix.textContent = finding.fix;
			text.append(fix);
		}
		return [cell(finding.verdict, finding.verdict), cell(i ? "" : check.id), text];
	});
}

async function checkShow() {
	const answer = await get("check.json", byId("check-error"));

	if (!answer)
		return;
	fill(byId("checks"), ["verdict", "check", "finding"],
		(await answer.json()).checks.flatMap(checkRows), "");
}

function ageShow() {
	const seconds = Math.round((Date.now() - last) / 1000);

	byId("age").className = Date.now() - last > LATE_MS ? "late" : "";
	if (last)
		byId("age").textContent = "Figures are " + seconds + " s old.";
}

// The next round begins after the end of this one.
async function again(show, period) {
	await show();
	setTimeout(() => again(show, period), period);
}

again(meshShow, PERIOD_MS);
again(watchShow, PERIOD_MS);
again(checkShow, CHECK_PERIOD_MS);
nameShow();
setInterval(ageShow, 1000);
